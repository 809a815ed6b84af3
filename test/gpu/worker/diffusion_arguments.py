import unittest

from infer_worker.errors import EngineError
from infer_worker.pipeline_arguments import Shape, arguments_for, lora_of, loras_of, shape_for
from infer_worker.pipelines import variant_of
from infer_worker.placement import choose_offload
from infer_worker.preview import preview_steps

INPUTS = {
    'prompt': 'a cat',
    'negative_prompt': None,
    'num_inference_steps': 20,
    'guidance_scale': 5,
    'width': 90,
    'height': 64,
    'num_frames': 10,
    'fps': 16,
    'extra': {},
}
SHAPE = Shape(96, 64, 13)


class Shapes(unittest.TestCase):
    def test_rounded_up_to_what_the_model_computes(self):
        self.assertEqual(shape_for(INPUTS, 16, 4), SHAPE)
        self.assertEqual(shape_for({**INPUTS, 'num_frames': 9}, 32, 8), Shape(96, 64, 9))
        self.assertEqual(shape_for({**INPUTS, 'num_frames': 1}, 8, 4), Shape(96, 64, 1))


class Arguments(unittest.TestCase):
    def test_only_those_that_the_pipeline_knows(self):
        basic = {'prompt': 'a cat', 'num_inference_steps': 20}
        for known, more in [
            ((), {}),
            (('guidance_scale', 'width', 'height'), {'guidance_scale': 5.0, 'width': 96, 'height': 64}),
            (('guidance_scale', 'negative_prompt'), {'guidance_scale': 5.0, 'negative_prompt': None}),
            (('num_frames', 'frame_rate'), {'num_frames': 13, 'frame_rate': 16}),
            (
                ('true_cfg_scale', 'guidance_scale', 'negative_prompt'),
                {'true_cfg_scale': 5.0, 'negative_prompt': ' '},
            ),
        ]:
            with self.subTest(known=known):
                self.assertEqual(arguments_for(known, INPUTS, SHAPE), {**basic, **more})

    def test_guidance_is_an_input_of_a_distilled_model_until_there_is_a_negative_prompt(self):
        known = ('true_cfg_scale', 'guidance_scale', 'negative_prompt')
        self.assertEqual(
            arguments_for(known, INPUTS, SHAPE, distilled=True),
            {'prompt': 'a cat', 'num_inference_steps': 20, 'guidance_scale': 5.0},
        )

    def test_a_negative_prompt_needs_classifier_free_guidance(self):
        inputs = {**INPUTS, 'negative_prompt': 'blur'}
        known = ('true_cfg_scale', 'guidance_scale', 'negative_prompt')
        self.assertEqual(
            arguments_for(known, inputs, SHAPE),
            {'prompt': 'a cat', 'num_inference_steps': 20, 'true_cfg_scale': 5.0, 'negative_prompt': 'blur'},
        )
        with self.assertRaisesRegex(EngineError, "no 'negative_prompt'"):
            arguments_for(('guidance_scale',), inputs, SHAPE)

    def test_further_fields_are_parameters_of_the_pipeline(self):
        with_eta = arguments_for(('eta',), {**INPUTS, 'extra': {'eta': 0.5, 'loras': []}}, SHAPE)
        self.assertEqual(with_eta['eta'], 0.5)
        for name in ('eta', 'generator', 'image'):
            with self.subTest(name=name), self.assertRaises(EngineError) as refused:
                arguments_for(('generator', 'image'), {**INPUTS, 'extra': {name: 1}}, SHAPE)
            self.assertEqual(refused.exception.status, 400)

    def test_an_image_stays_as_it_is_where_it_cannot_be_compressed(self):
        for more, compresses, expected in [({}, True, None), ({}, False, 0), ({'image_crf': 20}, False, 20)]:
            with self.subTest(more=more, compresses=compresses):
                arguments = arguments_for(('image_crf',), {**INPUTS, 'extra': more}, SHAPE, compresses=compresses)
                self.assertEqual(arguments.get('image_crf'), expected)
        self.assertNotIn('image_crf', arguments_for((), INPUTS, SHAPE, compresses=False))


class Loras(unittest.TestCase):
    def test_a_file_and_its_weight(self):
        self.assertEqual(lora_of('/a/b.safetensors=0.5'), ('/a/b.safetensors', 0.5))
        self.assertEqual(lora_of('/a/b.safetensors'), ('/a/b.safetensors', 1.0))
        with self.assertRaisesRegex(ValueError, 'must be a number'):
            lora_of('/a/b.safetensors=much')

    def test_weights_of_a_request(self):
        self.assertIsNone(loras_of(None, ['style']))
        self.assertEqual(loras_of([{'name': 'style', 'weight': 2}], ['style']), {'style': 2.0})
        self.assertEqual(loras_of([{'name': 'style'}], ['style']), {'style': 1.0})
        for wrong in ('style', ['style'], [{'name': 'other'}], [{'name': 'style', 'weight': 'x'}], [{'name': 'style', 'weight': True}]):
            with self.subTest(wrong=wrong), self.assertRaises(EngineError) as refused:
                loras_of(wrong, ['style'])
            self.assertEqual(refused.exception.status, 400)


class Placement(unittest.TestCase):
    def test_by_what_fits(self):
        for wanted, weights, largest, expected in [
            ('auto', 60, 50, 'none'),
            ('auto', 80, 50, 'model'),
            ('auto', 80, 75, 'sequential'),
            ('none', 800, 750, 'none'),
            ('sequential', 1, 1, 'sequential'),
        ]:
            with self.subTest(wanted=wanted, weights=weights):
                self.assertEqual(choose_offload(wanted, weights, largest, 100), expected)


class Variants(unittest.TestCase):
    def test_only_a_folder_with_nothing_else_has_one(self):
        for names, variant in [
            (['model_index.json', 'a.safetensors'], None),
            (['a.fp16.safetensors', 'b.fp16.safetensors'], 'fp16'),
            (['a.fp16-00001-of-00002.safetensors'], 'fp16'),
            (['a.bf16.safetensors'], 'bf16'),
            (['a.fp16.safetensors', 'b.safetensors'], None),
            ([], None),
        ]:
            with self.subTest(names=names):
                self.assertEqual(variant_of(names), variant)


class Previews(unittest.TestCase):
    def test_evenly_spread_and_never_the_last_step(self):
        self.assertEqual(preview_steps(3, 20), {4, 9, 14})
        self.assertEqual(preview_steps(1, 2), {0})
        self.assertEqual(preview_steps(3, 1), frozenset())
        self.assertEqual(preview_steps(0, 20), frozenset())


if __name__ == '__main__':
    unittest.main()
