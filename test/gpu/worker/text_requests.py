import base64
import unittest

from infer_worker.chat import TextRoutes, prompts_of
from infer_worker.embedding import inputs_of
from infer_worker.errors import EngineError
from infer_worker.text_request import data_of_url, read_messages, read_sampling


class Requests(unittest.TestCase):
    def refused(self, code, function, *arguments):
        with self.assertRaises(EngineError) as caught:
            function(*arguments)
        self.assertEqual((caught.exception.status, caught.exception.code), (400, code))
        return caught.exception.message

    def test_sampling(self):
        sampling = read_sampling({'max_tokens': 5, 'stop': 'a', 'temperature': 0, 'top_k': -1, 'n': 1, 'logprobs': False})
        self.assertEqual((sampling.most, sampling.stops, sampling.temperature, sampling.top_k), (5, ('a',), 0, -1))
        self.assertEqual(read_sampling({'max_tokens': 5, 'max_completion_tokens': 7}).most, 7)
        self.assertIsNone(read_sampling({}).seed)

    def test_fields_without_effect_are_refused_by_name(self):
        for name, value in (
            ('n', 2),
            ('tools', [{'type': 'function'}]),
            ('response_format', {'type': 'json_object'}),
            ('logprobs', True),
            ('logprobs', 0),
            ('logit_bias', {'5': 1}),
            ('presence_penalty', 0.5),
            ('echo', True),
            ('suffix', 'x'),
        ):
            self.assertIn(f"'{name}'", self.refused('unsupported_parameter', read_sampling, {name: value}))

    def test_wrong_values(self):
        for body in (
            {'max_tokens': 0},
            {'max_tokens': 1.5},
            {'max_tokens': True},
            {'temperature': -1},
            {'temperature': '1'},
            {'top_p': 1.1},
            {'seed': 1.5},
            {'stop': ['']},
            {'stop': ['a'] * 17},
            {'stop': 5},
        ):
            self.assertIn(f"'{next(iter(body))}'", self.refused('invalid_value', read_sampling, body))

    def test_messages(self):
        image = {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,' + base64.b64encode(b'xyz').decode()}}
        text = {'type': 'text', 'text': 'a'}
        self.assertEqual(
            read_messages([{'role': 'developer', 'content': 'a'}, {'role': 'user', 'content': [text, text]}], False),
            [{'role': 'system', 'content': 'a'}, {'role': 'user', 'content': 'a\na'}],
        )
        self.assertEqual(
            read_messages([{'role': 'user', 'content': [text, image]}], True),
            [{'role': 'user', 'content': [text, {'type': 'image', 'bytes': b'xyz'}]}],
        )
        self.assertIn('content[0]', self.refused('unsupported_parameter', read_messages, [{'role': 'user', 'content': [image]}], False))
        for wrong in (None, [], ['a'], [{'content': 'a'}], [{'role': 'tool', 'content': 'a'}], [{'role': 'user', 'content': 5}]):
            self.refused('invalid_value', read_messages, wrong, True)

    def test_data_urls(self):
        self.assertEqual(data_of_url('data:image/png;charset=x;base64,AAAA', 'x'), b'\0\0\0')
        self.refused('invalid_value', data_of_url, 'https://example.com/a.png', 'x')
        self.refused('invalid_image', data_of_url, 'data:image/png;base64,A*', 'x')

    def test_one_or_several_texts(self):
        for function in (inputs_of, prompts_of):
            self.assertEqual(function('a'), ['a'])
            self.assertEqual(function([1, 2]), [[1, 2]])
            self.assertEqual(function(['a', [1]]), ['a', [1]])
            for wrong in (None, [], [[]], [True], ['a', 1], {}):
                self.refused('invalid_value', function, wrong)


class Template(unittest.TestCase):
    def test_only_variables_of_the_template_reach_it(self):
        class Reader:
            chat_template = '{{ messages }}{% if enable_thinking %}{{ images }}{{ tokenize }}{% endif %}'

            def apply_chat_template(self, conversation, tokenize=True, processor_kwargs=None, **variables):
                pass

        given = {
            'enable_thinking': False,
            'thinking': True,
            'tokenize': False,
            'images': ['file:///etc/passwd'],
            'processor_kwargs': {'images': ['http://127.0.0.1/']},
        }
        self.assertEqual(TextRoutes('m', None, Reader(), True).template_variables(given), {'enable_thinking': False})
