import json
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

from infer_worker.embedding import encode_base64
from infer_worker.errors import EngineError
from infer_worker.ranking import paired, texts_of
from infer_worker.sentence_modules import pooling_of, read_modules
from infer_worker.token_batches import token_batches
from infer_worker.transformers_model import check_characters, context_length, truncation


class Batches(unittest.TestCase):
    def test_padded_tokens_stay_within_the_budget(self):
        lengths = [5, 90, 10, 10, 40, 1, 300]
        batches = token_batches(lengths, 100)
        self.assertEqual(batches, [[6], [1], [4, 2], [3, 0, 5]])
        self.assertEqual(token_batches([], 100), [])


class Modules(unittest.TestCase):
    def test_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(read_modules(folder).pooling, ('mean',))
            modules = [('Transformer', '0_Transformer'), ('Pooling', '1_Pooling'), ('Dense', '2_Dense'), ('Normalize', '3')]
            write(folder, 'modules.json', [{'type': f'sentence_transformers.models.{kind}', 'path': path} for kind, path in modules])
            write(folder, '1_Pooling/config.json', {'pooling_mode_cls_token': True, 'pooling_mode_mean_tokens': False})
            write(folder, '0_Transformer/sentence_bert_config.json', {'max_seq_length': 256})
            found = read_modules(folder)
            self.assertEqual(found.transformer, f'{folder}/0_Transformer')
            self.assertEqual((found.pooling, found.longest), (('cls',), 256))
            self.assertEqual([layer.folder for layer in found.dense], [f'{folder}/2_Dense'])
            write(folder, 'modules.json', [{'type': 'sentence_transformers.models.CNN', 'path': ''}])
            with self.assertRaisesRegex(ValueError, 'models.CNN'):
                read_modules(folder)

    def test_pooling(self):
        self.assertEqual(pooling_of({'pooling_mode': 'lasttoken'}), ('lasttoken',))
        self.assertEqual(pooling_of({'pooling_mode': ['cls', 'mean']}), ('cls', 'mean'))
        self.assertEqual(pooling_of({'pooling_mode_lasttoken': True, 'include_prompt': True}), ('lasttoken',))
        for unknown in ({'pooling_mode_weightedmean_tokens': True}, {}):
            with self.assertRaisesRegex(ValueError, 'not supported'):
                pooling_of(unknown)


class Limits(unittest.TestCase):
    def test_context(self):
        def limit(kind, positions, tokens, *others):
            config = SimpleNamespace(model_type=kind, max_position_embeddings=positions, pad_token_id=1)
            config.get_text_config = lambda: config
            return context_length(config, SimpleNamespace(model_max_length=tokens), *others)

        self.assertEqual(limit('bert', 512, int(1e30)), 512)
        self.assertEqual(limit('xlm-roberta', 514, int(1e30)), 512)
        self.assertEqual(limit('bert', 512, 384, 256), 256)
        self.assertIsNone(limit('t5', None, int(1e30), None))

    def test_truncation(self):
        self.assertEqual([truncation(n, 100) for n in (None, 0, -1, 50, 500)], [None, None, 100, 50, 100])
        self.assertEqual([truncation(n, None) for n in (None, -1, 50)], [None, None, 50])

    def test_long_texts_are_refused_uncounted(self):
        self.assertEqual(check_characters('a' * 640, 10, 'x'), 'a' * 640)
        with self.assertRaises(EngineError) as caught:
            check_characters('a' * 641, 10, 'x')
        self.assertEqual(caught.exception.code, 'context_length_exceeded')


class Pairs(unittest.TestCase):
    def test_pairs(self):
        self.assertEqual(paired(['a'], ['b', 'c']), [('a', 'b'), ('a', 'c')])
        self.assertEqual(paired(['a', 'b'], ['c']), [('a', 'c'), ('b', 'c')])
        self.assertEqual(paired(['a', 'b'], ['c', 'd']), [('a', 'c'), ('b', 'd')])
        with self.assertRaises(EngineError):
            paired(['a', 'b'], ['c', 'd', 'e'])

    def test_texts(self):
        self.assertEqual(texts_of([{'text': 'a'}, 'b'], 'documents'), ['a', 'b'])
        for wrong in ([], [5], None):
            with self.assertRaises(EngineError):
                texts_of(wrong, 'documents')

    def test_base64(self):
        self.assertEqual(encode_base64([1.0, -2.0]), 'AACAPwAAAMA=')


def write(folder, name, value):
    path = Path(folder, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding='utf-8')
