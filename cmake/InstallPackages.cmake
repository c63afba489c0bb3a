# cmake -DNPM=… -DFROM=web -DTO=BUILD/web -P InstallPackages.cmake: exactly the packages of package-lock.json, in TO/node_modules.
file(COPY ${FROM}/package.json ${FROM}/package-lock.json DESTINATION ${TO})
execute_process(
  COMMAND ${NPM} ci --prefer-offline --no-audit --no-fund --ignore-scripts
  WORKING_DIRECTORY ${TO} RESULT_VARIABLE failed OUTPUT_FILE ${TO}/npm.log ERROR_FILE ${TO}/npm.log)
if(failed)
  message(FATAL_ERROR "npm could not fetch the packages of web/package-lock.json; the first build needs npm's registry (see ${TO}/npm.log)")
endif()
file(TOUCH ${TO}/packages.stamp)
