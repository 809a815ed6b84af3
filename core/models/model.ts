import { z } from 'zod'
import { Bytes, Duration } from '../quantities.ts'
import { resolutions } from '../schemas/resolution.ts'
import { sandboxLevels } from '../schemas/sandbox-level.ts'
import { speechFormats } from '../schemas/speech-format.ts'
import { longestSpeechInput } from '../schemas/speech-input.ts'
import { impliedBy, Task, withImplied } from '../schemas/task.ts'

/** What an engine may be able to do beyond plain messages and prompts. A request that uses one its engine lacks is refused. */
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
] as const
export const Feature = z.enum(features)
export type Feature = z.infer<typeof Feature>

export const modelId = /^[A-Za-z0-9][A-Za-z0-9._:-]*(\/[A-Za-z0-9][A-Za-z0-9._:-]*)*$/

/** What a use of the model costs, in currency units. Zero, the default, makes spend limits inert. */
export const Price = z.strictObject({
  input_per_million_tokens: z.number().min(0).default(0),
  output_per_million_tokens: z.number().min(0).default(0),
})

const SandboxPath = z
  .string()
  .regex(/^\/[^\0\n]*[^/\0\n]$/, 'Write an absolute path such as /srv/engine, and not the root folder.')

/** One entry under `models:` in infer.yaml. */
export const Model = z
  .strictObject({
    id: z.string().max(128).regex(modelId, 'Letters, digits, ".", "_", ":", "-" and "/" between parts.'),
    engine: z
      .string()
      .default('gguf')
      .describe(
        'Which preset runs it: gguf (built in), llama-server, vllm, whisper-server, custom, remote, demo (built in, draws without a model).',
      ),
    source: z.string().optional().describe('The model file, folder or hub name that the engine loads.'),
    tasks: z
      .array(Task)
      .min(1)
      .default(['std/chat-completion', 'std/completion'])
      .superRefine((named, ctx) => {
        const all = withImplied(named)
        const idle = named.find(task => !all.includes(task))
        if (idle)
          ctx.addIssue({
            code: 'custom',
            message: `'${idle}' is done by a model that does ${impliedBy[idle]!.map(task => `'${task}'`).join(' or ')}: name that, and it follows by itself.`,
          })
      })
      .transform(withImplied)
      .describe(
        'What it does. A model that makes pictures does `std/image-generation` and `std/image-edit` by itself.',
      ),
    slug: z
      .string()
      .max(128)
      .regex(modelId)
      .optional()
      .describe(
        'The path below /slug under which pictures and videos are asked of it; with several such tasks each has its own name below this. The id when absent.',
      ),
    description: z.string().optional(),
    enabled: z.boolean().default(true),
    args: z.array(z.string()).default([]).describe('Appended to the argument list of the engine, as they are.'),
    command: z
      .array(z.string())
      .min(1)
      .optional()
      .describe('custom: the whole argument list; {port}, {model}, {id} are filled in.'),
    env: z
      .record(z.string(), z.string())
      .default({})
      .describe('Added to the environment that infer builds for the engine.'),
    sandbox: z
      .enum(sandboxLevels)
      .optional()
      .describe(
        'What the engine can reach. strict: its model and its own folders, and no network; for engines on a Unix socket. files: the network, and no files of the server or of users. none: everything. When absent: strict for built-in engines, files for others, and less where this machine cannot enforce it.',
      ),
    sandbox_read: z
      .array(SandboxPath)
      .default([])
      .describe('Files and folders that the engine reads besides its model, its program and what its command names.'),
    sandbox_write: z
      .array(SandboxPath)
      .default([])
      .describe('Files, folders and devices that the engine writes besides its own folders.'),
    health_path: z.string().startsWith('/').optional().describe('custom: answers 2xx once the engine can work.'),
    url: z.url().optional().describe('remote: the base address, including /v1 where the server has it.'),
    api_key_env: z.string().optional().describe('remote: the environment variable that holds its key.'),
    upstream_id: z
      .string()
      .optional()
      .describe('The name under which the engine itself knows the model; the id by default.'),
    memory: Bytes.optional().describe('Device memory it needs; estimated from the source when absent.'),
    devices: z
      .union([z.literal('cpu'), z.number().int().min(1)])
      .default(1)
      .describe('How many GPUs, or cpu.'),
    replicas: z
      .strictObject({ min: z.number().int().min(0).default(0), max: z.number().int().min(1).default(1) })
      .default({ min: 0, max: 1 }),
    concurrency: z.number().int().min(1).max(4096).optional().describe('Requests that one engine works on at once.'),
    max_queue: z
      .number()
      .int()
      .min(0)
      .default(512)
      .describe(
        'Synchronous requests that may wait for a free slot before more are refused; while the model loads, so many besides those that will have its slots.',
      ),
    idle_ttl: Duration.default(300_000).describe('Unloaded after this long without a request; 0 keeps it.'),
    dispatch_wait_ms: Duration.default(30_000).describe(
      'How long a synchronous request is held while the model loads or is busy.',
    ),
    load_timeout: Duration.default(600_000),
    no_progress: Duration.default(300_000).describe(
      'A request on which the engine makes no progress for this long has failed.',
    ),
    stop_grace: Duration.default(5_000).describe('Between asking the engine to stop and killing it.'),
    price: Price.default({ input_per_million_tokens: 0, output_per_million_tokens: 0 }),
    extra_params: z.array(z.string()).default([]).describe('Further request fields that are passed to the engine.'),
    resolutions: z
      .array(z.enum(resolutions))
      .min(1)
      .optional()
      .describe('Resolutions of videos that may be asked for, the usual one first; 480p and 720p when absent.'),
    features: z.array(Feature).optional().describe('Overrides what the preset says the engine can do.'),
    context_length: z
      .number()
      .int()
      .min(1)
      .optional()
      .describe('Tokens of one request, prompt and answer together; by the memory at hand when absent.'),
    gpu: z
      .enum(['auto', 'off', 'cuda', 'vulkan'])
      .optional()
      .describe('gguf: what computes on the card; the first that works here when absent (infer doctor shows it).'),
    gpu_layers: z
      .number()
      .int()
      .min(0)
      .max(4096)
      .optional()
      .describe('gguf: layers on the GPU, the output counted as one; as many as fit when absent.'),
    flash_attention: z
      .enum(['auto', 'on', 'off'])
      .optional()
      .describe('gguf: less memory for long contexts; auto when absent.'),
    kv_type: z
      .enum(['f16', 'q8_0', 'q4_0'])
      .optional()
      .describe('gguf: how the cache keeps its numbers. q8_0 takes half of f16, which is the default.'),
    threads: z.number().int().min(1).max(1024).optional().describe('gguf: processor threads.'),
    batch_size: z
      .number()
      .int()
      .min(32)
      .max(4096)
      .optional()
      .describe('gguf: tokens that are computed at once; 512 when absent.'),
    mmap: z.boolean().optional().describe('gguf: map the file into memory instead of reading it; true when absent.'),
    mlock: z.boolean().optional().describe('gguf: keep the model from being swapped out.'),
    voices: z
      .array(z.string().min(1).max(256))
      .min(1)
      .max(1000)
      .optional()
      .describe(
        'Of a model that speaks: the voices it has, the usual one first; others are refused. The engine judges when absent.',
      ),
    voice_aliases: z
      .record(z.string().min(1).max(256), z.string().min(1).max(256))
      .optional()
      .describe(
        'Of a model that speaks: further names of its voices, such as `alloy: af_heart` for programs that ask for those of OpenAI.',
      ),
    speech_formats: z
      .array(z.enum(speechFormats))
      .min(1)
      .optional()
      .describe(
        'Of a model that speaks: what its engine writes, where that is not every format; the others are made of its wav.',
      ),
    speech_input: z
      .number()
      .int()
      .min(1)
      .max(longestSpeechInput)
      .optional()
      .describe('Of a model that speaks: characters of one text; 4096 when absent.'),
    rerank_scores: z
      .enum(['probability', 'logit'])
      .optional()
      .describe('What the relevance scores of the engine are, where the preset does not know it better.'),
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
export type Model = z.output<typeof Model>
