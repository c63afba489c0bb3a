"""A proxy between clients and their server that makes links as bad as they get: slow, and cut at any byte."""

import asyncio
import random
import socket
import struct
import threading

UPLOAD = 100_000  # bytes; a client sends as many only in an upload


class BadLinks:
    """Forwards connections to `port` of the loopback interface, until they are cut.

    Every connection is given so many bytes, at random, or so many of an upload, or of a broadcast, in turn; then it ends, by a
    reset or in order, at once or after a while in which nothing passes. After `cuts` of them links are only slow.
    """

    def __init__(self, port, seed, cuts, longest_delay=0.02):
        self.target, self.cuts_left, self.longest_delay = port, cuts, longest_delay
        self.random = random.Random(seed)
        self.connections = 0
        self.cuts, self.cut_within_uploads, self.cut_within_broadcasts = 0, 0, 0
        ready = threading.Event()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, args=(ready,), daemon=True).start()
        ready.wait()

    def _run(self, ready):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()

    async def _serve(self, reader, writer):
        try:
            there, here = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        self.connections += 1
        kind = self.connections % 3
        if self.cuts_left <= 0:
            left = [None]
        elif kind:
            left = [UPLOAD + int(2 ** self.random.uniform(9, 18))]
        else:
            left = [int(2 ** self.random.uniform(9, 23))]  # from a few headers to several uploads
        sent, sent_back = [0], [0]
        counted = left if kind != 2 else [None]
        counted_back = left if kind != 1 else [None]
        ways = [asyncio.ensure_future(self._pass(reader, here, counted, sent)),
                asyncio.ensure_future(self._pass(there, writer, counted_back, sent_back))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        if left[0] is not None and left[0] <= 0:
            self.cuts_left -= 1
            self.cuts += 1
            self.cut_within_uploads += sent[0] > UPLOAD
            self.cut_within_broadcasts += kind == 2
            await asyncio.sleep(self.random.choice([0, 0, 0.5]))
        hard = self.random.random() < 0.5
        for way in ways:
            way.cancel()
        for end in (here, writer):
            if hard:
                end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()

    async def _pass(self, reader, writer, left, sent):
        try:
            while data := await reader.read(1 << 15):
                await asyncio.sleep(self.random.uniform(0, self.longest_delay))
                if left[0] is not None:
                    data = data[:left[0]]
                    left[0] -= len(data)
                sent[0] += len(data)
                writer.write(data)
                await writer.drain()
                if left[0] is not None and left[0] <= 0:
                    return
        except OSError:
            return
