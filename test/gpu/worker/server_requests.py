import http.client
import json
import os
import pathlib
import socket
import tempfile
import threading
import time
import unittest

from infer_worker.errors import EngineError, invalid
from infer_worker.generation import generation
from infer_worker.server import Server


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('local', timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Served(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = f'{folder.name}/socket'
        self.server = Server('secret')
        listener = self.server.listen(self.path, None)
        threading.Thread(target=listener.serve_forever, kwargs={'poll_interval': 0.01}, daemon=True).start()
        self.addCleanup(listener.server_close)
        self.addCleanup(listener.shutdown)

    def ask(self, method, path, body=None, key='secret', **headers):
        connection = Connection(self.path)
        connection.request(method, path, body, {'authorization': f'Bearer {key}', **headers})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content


class Requests(Served):
    def test_health_while_it_loads_and_afterwards(self):
        self.server.progress = 0.5
        self.assertEqual(self.ask('GET', '/health', key='')[0], 503)
        self.assertEqual(json.loads(self.ask('GET', '/health')[1]), {'status': 'loading', 'progress': 0.5})
        self.assertEqual(self.ask('POST', '/v1/x', '{}')[0], 503)
        self.server.routes = {}
        self.assertEqual(self.ask('GET', '/health')[1], b'{"status": "ok", "running": 0}')

    def test_refusals(self):
        def fail(request, _reply):
            raise {'invalid': invalid('no'), 'broken': RuntimeError('it broke')}[request.json()['how']]

        self.server.routes = {'POST /v1/x': fail}
        for method, path, body, key, status in [
            ('POST', '/v1/x', '{"how": "invalid"}', 'wrong', 401),
            ('POST', '/v1/y', '{}', 'secret', 404),
            ('POST', '/v1/x', '{', 'secret', 400),
            ('POST', '/v1/x', '[]', 'secret', 400),
            ('POST', '/v1/x', '{"how": "invalid"}', 'secret', 400),
            ('POST', '/v1/x', '{"how": "broken"}', 'secret', 500),
        ]:
            with self.subTest(path=path, body=body, key=key):
                found, content = self.ask(method, path, body, key)
                self.assertEqual(found, status)
                self.assertTrue(json.loads(content)['error']['message'])
        self.assertEqual(json.loads(self.ask('GET', '/health')[1])['running'], 0)

    def test_a_disconnected_caller_is_noticed_while_the_work_runs(self):
        seen = threading.Event()

        def work(request, reply):
            reply.begin('application/x-ndjson')
            reply.line({'began': True})
            if request.cancelled.wait(10):
                seen.set()

        self.server.routes = {'POST /v1/x': work}
        connection = Connection(self.path)
        connection.request('POST', '/v1/x', '{}', {'authorization': 'Bearer secret'})
        answer = connection.getresponse()
        self.assertEqual(answer.readline(), b'{"began": true}\n')
        self.assertEqual(json.loads(self.ask('GET', '/health')[1])['running'], 1)
        answer.close()
        connection.close()
        self.assertTrue(seen.wait(10))
        until = time.monotonic() + 10
        while json.loads(self.ask('GET', '/health')[1])['running'] and time.monotonic() < until:
            pass
        self.assertEqual(json.loads(self.ask('GET', '/health')[1])['running'], 0)

    def test_forms(self):
        parts = []
        self.server.routes = {'POST /v1/x': lambda request, reply: (parts.extend(request.form()), reply.send({}))}
        form = (
            b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\ntiny\r\n'
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n'
            b'Content-Type: audio/wav\r\n\r\n\x00\xff\r\n\x01\r\n--b--\r\n'
        )
        self.assertEqual(self.ask('POST', '/v1/x', form, **{'content-type': 'multipart/form-data; boundary=b'})[0], 200)
        self.assertEqual([(one.name, one.content, one.filename) for one in parts], [('model', b'tiny', None), ('file', b'\x00\xff\r\n\x01', 'a.wav')])
        self.assertEqual(self.ask('POST', '/v1/x', '{}', **{'content-type': 'application/json'})[0], 400)

    def test_too_large_a_body_is_not_read(self):
        self.server.routes = {}
        connection = Connection(self.path)
        connection.putrequest('POST', '/v1/x')
        connection.putheader('content-length', str(1 << 40))
        connection.endheaders()
        self.assertEqual(connection.getresponse().status, 413)


class Files(Served):
    """Calls with files, of engines that share no folder with infer."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.server.folder = self.folder = folder.name
        self.server.routes = generation(('slug/image-to-image',), self.run_call)

    def run_call(self, call):
        self.images = [pathlib.Path(path).read_bytes() for path in [call.inputs['image'], *call.inputs.get('images', [])]]
        if call.inputs['prompt'] == 'nothing':
            raise invalid('There is nothing to draw.')
        for name, content in (('a.png', b'first\n'), ('b.png', b'\x00' * 300_000)):
            pathlib.Path(call.path(name)).write_bytes(content)
        return [{'name': 'a.png', 'kind': 'image'}, {'name': 'b.png', 'kind': 'image'}]

    def call(self, files=None, rest=b'12345', **inputs):
        head = {
            'task': 'slug/image-to-image',
            'inputs': {'prompt': 'a cat', 'seed': 7, 'image': 'in.png', 'mask': None, **inputs},
            'files': files or [{'name': 'in.png', 'bytes': 3}, {'name': 'more.png', 'bytes': 2}],
        }
        body = json.dumps(head).encode() + b'\n' + rest
        return self.ask('POST', '/v1/generate', body, **{'content-type': 'application/vnd.infer.files'})

    def wait_until_empty(self):
        until = time.monotonic() + 10
        while os.listdir(self.folder) and time.monotonic() < until:
            pass
        self.assertEqual(os.listdir(self.folder), [])

    def test_files_come_with_the_call_and_follow_the_answer(self):
        status, content = self.call(images=['in.png', 'more.png'])
        self.assertEqual(status, 200)
        _progress, _done, last, files = content.split(b'\n', 3)
        self.assertEqual(
            json.loads(last),
            {
                'type': 'completed',
                'files': [
                    {'name': 'a.png', 'kind': 'image', 'bytes': 6},
                    {'name': 'b.png', 'kind': 'image', 'bytes': 300_000},
                ],
                'seed_used': 7,
            },
        )
        self.assertEqual(files, b'first\n' + b'\x00' * 300_000)
        self.assertEqual(self.images, [b'123', b'123', b'45'])
        self.wait_until_empty()

    def test_a_call_that_fails_leaves_no_files(self):
        status, content = self.call(prompt='nothing')
        self.assertEqual(status, 200)
        self.assertEqual(json.loads(content.splitlines()[-1])['error'], {'message': 'There is nothing to draw.', 'invalid': True})
        self.wait_until_empty()

    def test_calls_that_are_refused(self):
        for change in [
            {'files': [{'name': '../in.png', 'bytes': 5}]},
            {'files': [{'name': 'in.png', 'bytes': 5}, {'name': 'in.png', 'bytes': 5}]},
            {'files': [{'name': 'in.png', 'bytes': 0}]},
            {'files': [{'name': 'in.png', 'bytes': 4}]},
            {'files': [{'name': 'in.png'}]},
            {'files': [{'name': 'in.png', 'bytes': 1 << 40}]},
            {'image': '/etc/hostname'},
            {'images': ['in.png', 'absent.png']},
        ]:
            with self.subTest(change=change):
                status, content = self.call(**change)
                self.assertEqual(status, 400)
                self.assertTrue(json.loads(content)['error']['message'])
        self.wait_until_empty()
        self.assertEqual(self.call()[0], 200)

    def test_without_its_key_no_file_is_read(self):
        body = b'{"files": [{"name": "a", "bytes": 1}]}\n1'
        self.assertEqual(self.ask('POST', '/v1/generate', body, 'wrong', **{'content-type': 'application/vnd.infer.files'})[0], 401)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_call_that_breaks_off_leaves_no_files(self):
        connection = Connection(self.path)
        connection.putrequest('POST', '/v1/generate')
        connection.putheader('content-length', '1000')
        connection.putheader('content-type', 'application/vnd.infer.files')
        connection.putheader('authorization', 'Bearer secret')
        connection.endheaders()
        head = b'{"files": [{"name": "a.png", "bytes": %d}]}\n'
        line = head % (1000 - len(head) - 1)
        connection.send(line + b'123')
        until = time.monotonic() + 10
        while not os.listdir(self.folder) and time.monotonic() < until:
            pass
        self.assertEqual(len(os.listdir(self.folder)), 1)
        connection.close()
        self.wait_until_empty()


class Errors(unittest.TestCase):
    def test_the_body_has_a_code_only_if_there_is_one(self):
        self.assertEqual(EngineError(500, 'x').body(), {'error': {'message': 'x'}})
        self.assertEqual(invalid('x').body(), {'error': {'message': 'x', 'code': 'invalid_value'}})


if __name__ == '__main__':
    unittest.main()
