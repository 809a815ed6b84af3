import contextlib
import io
import json
import os
import shutil
import subprocess
import tempfile
import threading
import unittest
from types import SimpleNamespace

from infer_worker.errors import Cancelled, EngineError
from infer_worker.ffmpeg import frame_rate, rate_in
from infer_worker.frame_times import frame_times
from infer_worker.generation import Call, generation
from infer_worker.interpolation import Interpolator
from infer_worker.server import Request
from infer_worker.video import VideoReader, VideoWriter

FFMPEG = shutil.which('ffmpeg')


def call(cancelled=None):
    ignore = lambda *_: None  # noqa: E731
    return Call('t', {}, '/tmp', cancelled or threading.Event(), ignore, ignore, ignore)


class Times(unittest.TestCase):
    def test_table(self):
        for total, fps, rate, expected in (
            (4, 20, 10, [(0, 0), (0, 0.5), (1, 0), (1, 0.5)]),
            (3, 10, 10, [(0, 0), (1, 0), (2, 0)]),
            (3, 5, 10, [(0, 0), (2, 0), (4, 0)]),
            (4, 60, 24, [(0, 0), (0, 0.4), (0, 0.8), (1, 0.2)]),
        ):
            found = [(time.frame, round(time.share, 6)) for time in frame_times(total, fps, rate)]
            self.assertEqual(found, expected)

    def test_rounding_does_not_skip_frames(self):
        times = list(frame_times(1800, 60, 30000 / 1001))
        self.assertTrue(all(0 <= time.share < 1 for time in times))
        self.assertEqual([time.frame for time in frame_times(300, 30000 / 1001, 30000 / 1001)], list(range(300)))

    def test_pairs(self):
        def pairs(count, *timing):
            found = Interpolator.pairs(iter([bytes([at]) for at in range(count)]), frame_times(*timing), call())
            return [(before[0], after[0], [round(share, 3) for share in shares]) for before, after, shares in found]

        self.assertEqual(pairs(3, 6, 20, 10), [(0, 1, [0, 0.5]), (1, 2, [0, 0.5]), (2, 2, [0, 0.5])])
        self.assertEqual(pairs(5, 2, 5, 10), [(0, 1, [0]), (2, 3, [0])])
        self.assertEqual(pairs(1, 2, 10, 10), [(0, 0, [0]), (0, 0, [0])])
        with self.assertRaises(EngineError):
            pairs(0, 2, 10, 10)


class Rates(unittest.TestCase):
    def test_descriptions(self):
        for text, rate in (
            ('Stream #0:0: Video: h264 (High), yuv420p, 64x64, 25 fps, 25 tbr, 12800 tbn', 25),
            ('Stream #0:0: Video: h264, yuv420p, 29.97 fps, 29.97 tbr', 30000 / 1001),
            ('Stream #0:0: Video: h264, yuv420p, 23.98 fps, 23.98 tbr', 24000 / 1001),
            ('Stream #0:0: Video: h264, yuv420p, 12.50 fps, 12.50 tbr', 12.5),
            ('Stream #0:0: Video: h264, yuv420p, 1k fps, 1k tbr', 1000),
            ('Stream #0:0: Audio: aac, 44100 Hz', None),
            ('x: Invalid data found when processing input', None),
        ):
            self.assertEqual(rate_in(text), rate, text)


@unittest.skipUnless(FFMPEG, 'ffmpeg is not installed')
class Videos(unittest.TestCase):
    def test_frames_are_written_and_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path, sound = f'{folder}/video.mp4', f'{folder}/a.wav'
            subprocess.run([FFMPEG, '-v', 'error', '-f', 'lavfi', '-i', 'sine=440:d=5', sound], check=True)
            with VideoWriter(FFMPEG, path, 64, 32, 10, sound, 0.5) as writer:
                for level in range(5):
                    writer.write(bytes([level * 50]) * 64 * 32 * 3)
                writer.end()
            self.assertEqual(frame_rate(FFMPEG, path), 10)
            with VideoReader(FFMPEG, path, 64, 32, 10) as reader:
                levels = [frame[0] for frame in reader.frames()]
            self.assertEqual(len(levels), 5)
            for at, level in enumerate(levels):
                self.assertAlmostEqual(level, at * 50, delta=4)
            heard = subprocess.run([FFMPEG, '-hide_banner', '-i', path], capture_output=True, check=False).stderr.decode()
            self.assertIn('Audio: aac', heard)
            self.assertRegex(heard, r'Duration: 00:00:00\.5')

    def test_errors_name_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f'{folder}/none.mp4'
            with open(path, 'wb') as file:
                file.write(b'no video')
            with self.assertRaises(EngineError) as caught:
                frame_rate(FFMPEG, path)
            self.assertEqual(caught.exception.code, 'invalid_video')
            with self.assertRaisesRegex(EngineError, 'none/v.mp4'):
                with VideoWriter(FFMPEG, f'{folder}/none/v.mp4', 64, 64, 10) as writer:
                    for _ in range(1000):
                        writer.write(bytes(64 * 64 * 3))
            with self.assertRaises(EngineError) as caught:
                VideoReader(f'{folder}/no-ffmpeg', path, 64, 64, 10)
            self.assertEqual(caught.exception.code, 'unsupported_task')


class Generation(unittest.TestCase):
    def lines(self, run, task='a'):
        written = []
        reply = SimpleNamespace(begin=lambda _type: None, line=written.append, end=lambda: written.append('end'))
        body = {'task': task, 'inputs': {'seed': 7}, 'folder': os.sep}
        with contextlib.redirect_stderr(io.StringIO()):
            generation(('a',), run)['POST /v1/generate'](Request('', json.dumps(body).encode()), reply)
        return written

    def test_files_are_named(self):
        def run(running):
            running.log('INFO', 'x')
            running.progress(2)
            return [{'name': 'video.mp4', 'kind': 'video'}]

        self.assertEqual(
            self.lines(run),
            [
                {'type': 'progress', 'fraction': 0.0},
                {'type': 'log', 'level': 'INFO', 'message': 'x'},
                {'type': 'progress', 'fraction': 1.0},
                {'type': 'progress', 'fraction': 1.0},
                {'type': 'completed', 'files': [{'name': 'video.mp4', 'kind': 'video'}], 'seed_used': 7},
                'end',
            ],
        )

    def test_failures(self):
        def failing(error):
            def run(_call):
                raise error

            return run

        self.assertEqual(
            self.lines(failing(EngineError(400, 'no')))[1:],
            [{'type': 'failed', 'error': {'message': 'no', 'invalid': True}}, 'end'],
        )
        self.assertEqual(self.lines(failing(EngineError(500, 'no')))[1]['error'], {'message': 'no', 'invalid': False})
        self.assertEqual(self.lines(failing(RuntimeError('x')))[1]['error']['message'], 'RuntimeError: x')
        with self.assertRaises(Cancelled):
            self.lines(failing(Cancelled()))
        with self.assertRaises(EngineError):
            self.lines(failing(Cancelled()), 'b')

    def test_a_cancelled_call_stops(self):
        cancelled = threading.Event()
        call(cancelled).check()
        cancelled.set()
        with self.assertRaises(Cancelled):
            call(cancelled).check()
