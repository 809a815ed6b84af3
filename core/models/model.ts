import { z } from 'zod'
import { resolutions } from '../schemas/resolution.ts'
import { impliedBy, ModelTask, tasksBy, withImplied } from '../schemas/task.ts'
import { type Adapter, adapterField } from './adapter.ts'
import { ComfyuiSettings } from './comfyui/settings.ts'
import { embeddingFields } from './embedding-fields.ts'
import { ggufFields, launchFields, pythonFields, residencyFields, speechFields } from './engine-fields.ts'
import { GenerationDefaults } from './generation-defaults.ts'
import { modelNameSchema } from './model-id.ts'
import { nameFields } from './name-fields.ts'
import { priceSchema } from './price.ts'

/** Optional features of an engine. A request that uses a feature that its engine lacks is refused. */
export const features = [
  'tools',
  'json_object',
  'json_schema',
  'logprobs',
  'n',
  'logit_bias',
  'penalties',
  'top_k',
  'min_p',
  'repetition_penalty',
  'images',
  'audio',
  'files',
  'chat_template_kwargs',
  'echo',
  'suffix',
  'best_of',
  'segments',
  'words',
  'speakers',
  'transcription_stream',
  'voice_cloning',
  'variations',
  'transparent_background',
] as const
export const Feature = z.enum(features)
export type Feature = z.infer<typeof Feature>

/** The other keys of the model in an example. */
const images = {
  id: 'flux-dev',
  engine: 'custom',
  command: ['python3', 'serve.py', '--port', '{port}'],
  tasks: tasksBy('create-image'),
}

/** Keys of a model about its identity and its tasks. */
const ownFields = {
  id: modelNameSchema().meta({
    description:
      'Name of the model in requests. Letters, digits and `.` `_` `:` `-`, with `/` between parts; each model has another.',
    example: 'qwen3-8b',
  }),
  engine: z
    .string()
    .default('gguf')
    .meta({
      description:
        'Program that runs the model: gguf (built in), llama-server, vllm, vllm-omni, sglang, sglang-diffusion, tei, infinity, whisper-server, speaches, kokoro-fastapi, sd-server, comfyui, python (libraries of Python: see `infer engine setup`), piper, espeak-ng, custom (any command), remote (a server elsewhere), infer (a model of another infer) or demo (built in, draws images without a model).',
      example: 'vllm',
      with: { id: 'llama-70b', source: 'meta-llama/Llama-3.3-70B-Instruct' },
    }),
  source: z.string().optional().meta({
    description:
      'Model file, folder, or name on the model hub that the engine loads. With `comfyui`, the file of the graph.',
    example: '/models/qwen3-8b-q4_k_m.gguf',
    absent:
      'none; required for gguf, llama-server, whisper-server, sd-server, comfyui, python, piper and kokoro-fastapi; others take the id',
  }),
  tasks: z
    .array(ModelTask)
    .min(1)
    .default(tasksBy('chat', 'complete'))
    .superRefine((named, ctx) => {
      const all = withImplied(named)
      const implied = named.find(task => !all.includes(task))
      if (implied)
        ctx.addIssue({
          code: 'custom',
          message: `'${implied}' is implied by ${impliedBy[implied]!.map(task => `'${task}'`).join(' or ')}: list that task instead.`,
        })
    })
    .transform(withImplied)
    .meta({
      description:
        'Tasks that the model does. A model that makes images also does `std/image-generation` and `std/image-edit`, which need not be listed.',
      example: tasksBy('embed').slice(0, 1),
    }),
  slug: modelNameSchema().optional().meta({
    description:
      'Path below /slug for the image and video tasks of the model. With several such tasks the name of the task follows, as in `flux/text-to-image`.',
    example: 'flux',
    with: images,
    absent: 'the id',
  }),
  description: z.string().optional().meta({
    description: 'Text about the model that lists of models show.',
    example: 'General chat, 32k context',
    absent: 'none',
  }),
  enabled: z.boolean().default(true).meta({
    description: 'Whether the model is offered. An entry that is switched off need not be complete.',
    example: false,
  }),
  local_only: z.boolean().default(false).meta({
    description:
      'Requests for the model are never answered by a model that runs elsewhere: no `remote` model may be a fallback of it.',
    example: true,
  }),
  price: priceSchema()
    .prefault({})
    .meta({
      description: 'What the use of the model costs, in units of `currency`. A key that is left out costs nothing.',
      example: { input_per_million_tokens: 0.5, output_per_million_tokens: 1.5 },
      absent: 'none: work of the model costs nothing',
    }),
  extra_params: z
    .array(z.string())
    .default([])
    .meta({
      description:
        'Request fields of image, video and transcription tasks that infer does not know and passes to the engine.',
      example: ['scheduler'],
      with: images,
    }),
  resolutions: z
    .array(z.enum(resolutions))
    .min(1)
    .optional()
    .meta({
      description: 'Resolutions of videos that requests may name, the default one first.',
      example: ['720p', '1080p'],
      with: { ...images, tasks: tasksBy('create-video') },
      absent: '480p and 720p',
    }),
  generation_defaults: GenerationDefaults,
  input_images: z
    .int()
    .min(1)
    .max(16)
    .optional()
    .meta({
      description: 'How many images one edit may have.',
      unit: 'images',
      example: 3,
      with: { ...images, tasks: tasksBy('edit-image') },
      absent: '16 for demo, 1 for others',
    }),
  features: z
    .array(Feature)
    .optional()
    .meta({
      description:
        'What the engine can do beyond plain text, in place of what infer knows of it. A request that uses anything else is refused.',
      example: ['tools', 'json_schema'],
      absent: 'what infer knows of the engine',
    }),
  comfyui: ComfyuiSettings,
  rerank_scores: z.enum(['probability', 'logit']).optional().meta({
    description: 'What the relevance scores of the engine are. Logits are turned into probabilities.',
    example: 'logit',
    absent: 'logit for llama-server, probability for others',
  }),
}

/** The keys of a model by section, in the order of the configuration reference. */
export const modelFields = {
  own: ownFields,
  names: { ...nameFields, ...adapterField },
  launch: launchFields,
  residency: residencyFields,
  gguf: ggufFields,
  python: pythonFields,
  speech: speechFields,
  embeddings: embeddingFields,
}

/** One entry under `models:` in infer.yaml. */
export const Model = z
  .strictObject({
    ...ownFields,
    ...nameFields,
    ...adapterField,
    ...launchFields,
    ...residencyFields,
    ...ggufFields,
    ...pythonFields,
    ...speechFields,
    ...embeddingFields,
  })
  .superRefine(({ voices, voice_aliases }, ctx) => {
    for (const [name, voice] of Object.entries(voice_aliases ?? {}))
      if (voices && !voices.includes(voice))
        ctx.addIssue({
          code: 'custom',
          path: ['voice_aliases', name],
          message: `there is no voice '${voice}' in 'voices': ${voices.slice(0, 100).join(', ')}.`,
        })
  })
  .meta({ id: 'Model' })
/** `adapters`: the entries of the file that are adapters of it, as `withAdapters` attaches them. */
export type Model = z.output<typeof Model> & { adapters?: readonly Adapter[] | undefined }

/** Milliseconds that a synchronous request may wait for a slot of the model; infinite where no number is set (`auto`). */
export const slotWaitMs = ({ dispatch_wait_ms }: Pick<Model, 'dispatch_wait_ms'>): number =>
  dispatch_wait_ms === 'auto' ? Number.POSITIVE_INFINITY : dispatch_wait_ms
