import { expect, test } from 'vitest'
import { type Graph, parseGraph } from '../../../../core/models/comfyui/graph.ts'
import { mappingFault } from '../../../../core/models/comfyui/graph-fault.ts'
import { proposeMapping } from '../../../../core/models/comfyui/propose-mapping.ts'
import { Model } from '../../../../core/models/model.ts'

const node = (class_type: string, inputs: Record<string, unknown> = {}) => ({ class_type, inputs })

/** The usual graph of Stable Diffusion. */
const sd = {
  3: node('KSampler', {
    seed: 1,
    steps: 20,
    cfg: 8,
    sampler_name: 'euler',
    denoise: 1,
    model: ['4', 0],
    positive: ['6', 0],
    negative: ['7', 0],
    latent_image: ['5', 0],
  }),
  4: node('CheckpointLoaderSimple', { ckpt_name: 'sd_xl_base_1.0.safetensors' }),
  5: node('EmptyLatentImage', { width: 1024, height: 1024, batch_size: 1 }),
  6: node('CLIPTextEncode', { text: 'a cat', clip: ['4', 1] }),
  7: node('CLIPTextEncode', { text: 'ugly', clip: ['4', 1] }),
  8: node('VAEDecode', { samples: ['3', 0], vae: ['4', 2] }),
  9: node('SaveImage', { filename_prefix: 'ComfyUI', images: ['8', 0] }),
}

/** The sampler of Flux: texts behind a guider, the seed and the steps in nodes of their own. */
const flux = {
  5: node('EmptySD3LatentImage', { width: 1024, height: 1024, batch_size: 1 }),
  6: node('CLIPTextEncode', { text: 'a cat', clip: ['11', 0] }),
  8: node('VAEDecode', { samples: ['13', 0] }),
  9: node('SaveImage', { filename_prefix: 'flux', images: ['8', 0] }),
  13: node('SamplerCustomAdvanced', { noise: ['25', 0], guider: ['22', 0], sigmas: ['17', 0], latent_image: ['5', 0] }),
  17: node('BasicScheduler', { scheduler: 'simple', steps: 20, denoise: 1 }),
  22: node('BasicGuider', { conditioning: ['26', 0] }),
  25: node('RandomNoise', { noise_seed: 3 }),
  26: node('FluxGuidance', { guidance: 3.5, conditioning: ['6', 0] }),
}

/** Wan image-to-video: both conditionings pass through one node. */
const wan = {
  3: node('KSampler', { seed: ['30', 0], steps: 20, cfg: 6, positive: ['50', 0], negative: ['50', 1], denoise: 1 }),
  30: node('PrimitiveInt', { value: 5 }),
  6: node('CLIPTextEncode', { text: 'a boat' }),
  7: node('CLIPTextEncode', { text: 'still' }),
  50: node('WanImageToVideo', {
    width: 832,
    height: 480,
    length: 81,
    batch_size: 1,
    positive: ['6', 0],
    negative: ['7', 0],
    start_image: ['52', 0],
  }),
  52: node('LoadImage', { image: 'boat.png' }),
  57: node('CreateVideo', { fps: 16, images: ['8', 0] }),
  58: node('SaveVideo', { filename_prefix: 'video/wan', format: 'mp4', codec: 'h264', video: ['57', 0] }),
}

const inpaint = {
  ...sd,
  5: node('VAEEncodeForInpaint', { pixels: ['10', 0], mask: ['12', 0], grow_mask_by: 6 }),
  7: node('ConditioningZeroOut', { conditioning: ['6', 0] }),
  10: node('LoadImage', { image: 'in.png' }),
  12: node('LoadImageMask', { image: 'mask.png', channel: 'red' }),
}

test.each<[string, Graph, object]>([
  [
    'Stable Diffusion',
    sd,
    {
      task: 'slug/text-to-image',
      inputs: {
        prompt: '6.inputs.text',
        negative_prompt: '7.inputs.text',
        seed: '3.inputs.seed',
        width: '5.inputs.width',
        height: '5.inputs.height',
        num_images: '5.inputs.batch_size',
        num_inference_steps: '3.inputs.steps',
        guidance_scale: '3.inputs.cfg',
      },
      outputs: ['9'],
      missing: [],
    },
  ],
  [
    'Flux',
    flux,
    {
      task: 'slug/text-to-image',
      inputs: {
        prompt: '6.inputs.text',
        seed: '25.inputs.noise_seed',
        width: '5.inputs.width',
        height: '5.inputs.height',
        num_images: '5.inputs.batch_size',
        num_inference_steps: '17.inputs.steps',
        guidance_scale: '26.inputs.guidance',
      },
      outputs: ['9'],
      missing: ['negative_prompt'],
    },
  ],
  [
    'Wan, image to video',
    wan,
    {
      task: 'slug/image-to-video',
      inputs: {
        prompt: '6.inputs.text',
        negative_prompt: '7.inputs.text',
        seed: '30.inputs.value',
        width: '50.inputs.width',
        height: '50.inputs.height',
        num_inference_steps: '3.inputs.steps',
        guidance_scale: '3.inputs.cfg',
        num_frames: '50.inputs.length',
        fps: '57.inputs.fps',
        image: '52.inputs.image',
      },
      outputs: ['58'],
      missing: [],
    },
  ],
  [
    'inpainting with an empty negative prompt',
    inpaint,
    {
      task: 'slug/inpainting',
      inputs: {
        prompt: '6.inputs.text',
        seed: '3.inputs.seed',
        num_inference_steps: '3.inputs.steps',
        guidance_scale: '3.inputs.cfg',
        strength: '3.inputs.denoise',
        image: '10.inputs.image',
        mask: '12.inputs.image',
      },
      outputs: ['9'],
      missing: ['negative_prompt', 'width', 'height', 'num_images'],
    },
  ],
])('the mapping of %s is proposed, and fits', (_name, graph, proposal) => {
  const proposed = proposeMapping(graph)
  expect(proposed).toEqual(proposal)
  const { inputs, outputs, task } = proposed
  const model = Model.parse({ id: 'one', engine: 'comfyui', tasks: [task], comfyui: { inputs, outputs } })
  expect(mappingFault(graph, model)).toBeUndefined()
})

const mapped = (inputs: object, more: object = {}) =>
  Model.parse({
    id: 'one',
    engine: 'comfyui',
    tasks: ['slug/text-to-image'],
    comfyui: { inputs: { prompt: '6.inputs.text', ...inputs } },
    ...more,
  })

test.each([
  [mapped({ seed: '33.inputs.seed' }), "the graph has no node '33'. Its nodes: 3 (KSampler)"],
  [mapped({ seed: '3.inputs.noise' }), "node '3' (KSampler) has no input 'noise'. Its inputs: seed, steps"],
  [mapped({ seed: '3.inputs.model' }), "that input is linked to node '4' (CheckpointLoaderSimple)"],
  [mapped({ sede: '3.inputs.seed' }), "names the parameter 'sede', which does not exist. Did you mean 'seed'?"],
  [mapped({}, { tasks: ['slug/inpainting'] }), "the task 'slug/inpainting' needs 'image' in 'comfyui.inputs'"],
  [
    mapped({}, { comfyui: { inputs: { prompt: '6.inputs.text' }, outputs: ['8', '99'] } }),
    "names the node '99', which the graph does not have. Nodes that save files: 9 (SaveImage).",
  ],
])('a mapping that does not fit is refused with what would', (model, sentence) => {
  expect(mappingFault(sd, model)).toContain(sentence)
})

test('a parameter of extra_params can be mapped', () => {
  const model = mapped({ sampler: '3.inputs.sampler_name' }, { extra_params: ['sampler'] })
  expect(mappingFault(sd, model)).toBeUndefined()
})

test.each([
  ['{', 'is not JSON'],
  ['{"nodes": [], "links": [], "version": 0.4}', 'export it in API format'],
  ['[]', 'is not a ComfyUI graph in API format'],
  ['{"3": {"inputs": {}}}', "has a node '3' without class_type"],
  ['{"3": 4}', "its member '3' is not a node"],
])('the file %s is refused', (text, sentence) => {
  expect(() => parseGraph(text, 'flux.json')).toThrow(sentence)
})
