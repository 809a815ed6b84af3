import http.client
import json
import socket
import tempfile
import threading
import time
import unittest

from infer_worker.errors import EngineError, invalid
from infer_worker.server import Server


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('local', timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Requests(unittest.TestCase):
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


class Errors(unittest.TestCase):
    def test_the_body_has_a_code_only_if_there_is_one(self):
        self.assertEqual(EngineError(500, 'x').body(), {'error': {'message': 'x'}})
        self.assertEqual(invalid('x').body(), {'error': {'message': 'x', 'code': 'invalid_value'}})


if __name__ == '__main__':
    unittest.main()
