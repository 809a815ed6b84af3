import { z } from 'zod'
import { Bytes, Duration } from '../quantities.ts'
import { regionLabels } from '../schemas/region.ts'
import { sandboxLevels } from '../schemas/sandbox-level.ts'
import { longestSpeechInput, speechFormats } from '../schemas/speech-format.ts'
import { tasksBy } from '../schemas/task.ts'
import { HttpUrl } from './http-url.ts'
import { ModelSchedule } from './model-schedule.ts'
import { ModelPools } from './pools.ts'
import { NodeCount } from './spanned-nodes.ts'
import { Speculative } from './speculative.ts'

/** Keys of a model about its devices, its memory, its number of concurrent requests and its timeouts. */
export const residencyFields = {
  memory: Bytes.optional().meta({
    description: 'Device memory that one engine of the model needs, on all its devices together.',
    example: '24GB',
    absent:
      'estimated from the model file; without an estimate (a name on the hub) the engine gets its devices for itself',
  }),
  devices: z
    .union([z.enum(['auto', 'cpu']), z.int().min(1), z.array(z.union([z.int().min(0), z.string().min(1)])).min(1)])
    .default('auto')
    .meta({
      description:
        'Number of GPUs that one engine uses, or `cpu`. `auto`: one, or for gguf, llama-server, vllm and sglang as many as the model needs if it does not fit on one. A list binds it to these GPUs, by number, id, UUID or name: `[0, 2]`. Engines that can do without a GPU use the processor where there is none.',
      unit: 'GPUs',
      example: 2,
      with: { id: 'llama-70b', engine: 'vllm', source: 'meta-llama/Llama-3.3-70B-Instruct' },
    }),
  nodes: NodeCount,
  pools: ModelPools,
  replicas: z
    .strictObject({
      min: z.int().min(0).default(0).meta({
        description: 'Engines that are loaded at the start and stay loaded. They are never unloaded for other models.',
        unit: 'engines',
        example: 1,
      }),
      max: z.int().min(1).default(1).meta({
        description:
          'Engines that run at most. A further one is started when requests would wait longer than its load takes and memory is free.',
        unit: 'engines',
        example: 2,
      }),
    })
    .default({ min: 0, max: 1 })
    .meta({ description: 'How many engines of the model run at a time.', example: { min: 1, max: 2 } }),
  concurrency: z.int().min(1).max(4096).optional().meta({
    description:
      'Slots: requests that one engine works on at a time. `gguf` takes 256 at most, `whisper-server` and `sd-server` 1.',
    unit: 'requests',
    example: 8,
    absent:
      '4 for gguf and llama-server, 2 or 1 where their memory has no room for more with a long context, 256 for vllm, 128 for sglang, 64 for tei, infinity, remote and infer, 16 for custom, 4 for speaches and kokoro-fastapi, 2 for demo, 1 for whisper-server, sd-server, comfyui, vllm-omni and sglang-diffusion',
  }),
  max_queue: z.int().min(0).default(512).meta({
    description:
      'Synchronous requests that may wait for a free slot; further ones get 429 `queue_full`. While the model loads, as many more may wait as it will have slots.',
    unit: 'requests',
    example: 64,
  }),
  idle_ttl: Duration.default(300_000).meta({
    description: 'Time without a request after which the model is unloaded. 0 keeps it until another needs the memory.',
    example: '30m',
  }),
  schedule: ModelSchedule,
  dispatch_wait_ms: z
    .union([z.literal('auto'), Duration])
    .default('auto')
    .meta({
      description:
        'Time that a synchronous request waits while the model loads or is busy; then it gets 503. `auto` holds it while its client is connected, and answers 503 as soon as the wait is expected to take longer than `limits.hold_max`.',
      unit: 'milliseconds',
      example: '2m',
    }),
  order_bound: z.number().min(0).optional().meta({
    description: 'As `limits.order_bound`, for requests to this model.',
    unit: 'loads',
    example: 2,
    absent: 'as `limits.order_bound`',
  }),
  parking: z
    .union([z.enum(['auto', 'off']), z.literal([1, 2])])
    .optional()
    .meta({
      description:
        'Whether an idle engine of vllm or sglang keeps its weights in the main memory when another model needs its GPU, and is woken instead of started anew. 2 (vllm only) drops the weights too, and reads them again. `auto` is 1 on GPUs of NVIDIA, where the main memory has room.',
      example: 'auto',
      with: { id: 'qwen3-8b', engine: 'vllm', source: '/models/qwen3-8b' },
      absent: 'off',
    }),
  load_timeout: Duration.default(600_000).meta({
    description:
      'Time that a starting engine may print nothing before its load has failed. In all a load may take ten times as long.',
    example: '30m',
  }),
  no_progress: Duration.default(300_000).meta({
    description: 'Time after which a request has failed with 504 `timeout` when the engine sends nothing for it.',
    example: '1m',
  }),
  stop_grace: Duration.default(5_000).meta({
    description: 'Time between asking the engine to stop (SIGTERM) and killing it.',
    example: '30s',
  }),
}

/** Keys of a model for the built-in engine. Other engines refuse all of them but `context_length` and `speculative`. */
export const ggufFields = {
  context_length: z.int().min(1).optional().meta({
    description:
      'Tokens of one request, prompt and answer together. Each slot has a context of this length. Also for vllm and llama-server.',
    unit: 'tokens',
    example: 16_384,
    absent: '32768, for coders 65536, less where the memory has no room; never above what the model was trained for',
  }),
  gpu: z.enum(['auto', 'off', 'cuda', 'vulkan']).optional().meta({
    description: 'What computes on the GPU. `infer doctor` shows which work here.',
    example: 'cuda',
    absent: 'auto: the first that works here',
  }),
  gpu_layers: z.int().min(0).max(4096).optional().meta({
    description: 'Layers of the model on the GPU; the output layer counts as one. The rest runs on the processor.',
    unit: 'layers',
    example: 20,
    absent: 'as many as fit',
  }),
  flash_attention: z
    .enum(['auto', 'on', 'off'])
    .optional()
    .meta({ description: 'Needs less memory for long contexts.', example: 'on', absent: 'auto' }),
  kv_type: z.enum(['f16', 'q8_0', 'q4_0']).optional().meta({
    description: 'Number format of the KV cache. q8_0 takes half of the memory of f16, q4_0 about a quarter.',
    example: 'q8_0',
    absent: 'f16',
  }),
  threads: z.int().min(1).max(1024).optional().meta({
    description: 'Processor threads that compute.',
    unit: 'threads',
    example: 8,
    absent: 'by the number of cores',
  }),
  batch_size: z.int().min(32).max(4096).optional().meta({
    description: 'Tokens that are computed at a time. More is faster on long prompts and takes more memory.',
    unit: 'tokens',
    example: 1024,
    absent: '512',
  }),
  speculative: Speculative,
  mmap: z.boolean().optional().meta({
    description: 'Map the model file into memory instead of reading it.',
    example: false,
    absent: 'true',
  }),
  mlock: z.boolean().optional().meta({
    description: 'Keep the model in memory, so that the system never swaps it out.',
    example: true,
    absent: 'false',
  }),
}

/** The other keys of the model in each example. */
const python = { id: 'flux-dev', engine: 'python', source: '/models/flux-dev', tasks: tasksBy('create-image') }

/** Keys of a model for the engine `python`. Other engines refuse them. */
export const pythonFields = {
  environment: z
    .string()
    .regex(/^(\/[^\0\n]*[^/\0\n]|[A-Za-z0-9][A-Za-z0-9._-]*)$/, 'Write a name such as speech, or an absolute path.')
    .optional()
    .meta({
      description:
        'Python environment that has the libraries of the model: a name below `engines` of the data directory, as `infer engine list` shows it, or the absolute path of a virtual environment with infer-worker.',
      example: '/srv/diffusers',
      with: python,
      absent: 'speech for speech and transcription, python for others',
    }),
  dtype: z.enum(['float32', 'bfloat16', 'float16']).optional().meta({
    description: 'Number format of the weights.',
    example: 'bfloat16',
    with: python,
    absent: 'that of the files on a GPU, float32 or int8 on the processor',
  }),
  quantization: z
    .string()
    .regex(/^[a-z0-9_]{1,32}$/, 'Write a name such as nf4 or int8.')
    .optional()
    .meta({
      description: 'Number format to which the weights are quantized when they are loaded. The library must know it.',
      example: 'nf4',
      with: python,
      absent: 'none',
    }),
  offload: z.enum(['none', 'model', 'sequential']).optional().meta({
    description:
      'Parts of the model that wait in the memory of the host: none, whole models that do not compute, or every layer.',
    example: 'model',
    with: python,
    absent: 'by what fits into the booked memory',
  }),
  loras: z
    .array(
      z
        .string()
        .regex(
          /^\/[^\0\n=]+(=-?\d{1,2}(\.\d{1,4})?)?$/,
          'Write the absolute path of a file, with a weight as in /models/style.safetensors=0.8.',
        ),
    )
    .max(16)
    .optional()
    .meta({
      description: 'LoRA files that change the model, each with its weight; without one it is 1.',
      example: ['/models/style.safetensors=0.8'],
      with: python,
      absent: 'none',
    }),
  compile: z.boolean().optional().meta({
    description: 'Compile the model with `torch.compile`: a long first request, then faster ones. The result is kept.',
    example: true,
    with: python,
    absent: 'false',
  }),
}

/** The other keys of the model in each example. */
const kokoro = { id: 'kokoro', engine: 'remote', url: 'http://127.0.0.1:8880/v1', tasks: tasksBy('synthesize') }

/** Keys of a model that turns text into audio. */
export const speechFields = {
  voices: z
    .array(z.string().min(1).max(256))
    .min(1)
    .max(1000)
    .optional()
    .meta({
      description: 'Voices of the model, the default one first. Requests for others are refused.',
      example: ['af_heart', 'bm_george'],
      with: kokoro,
      absent: 'any: the engine decides',
    }),
  voice_aliases: z
    .record(z.string().min(1).max(256), z.string().min(1).max(256))
    .optional()
    .meta({
      description: "Further names of voices, for programs that ask for OpenAI's.",
      example: { alloy: 'af_heart' },
      with: kokoro,
      absent: 'none; demo has those of OpenAI',
    }),
  speech_formats: z
    .array(z.enum(speechFormats))
    .min(1)
    .optional()
    .meta({
      description:
        'Audio formats that the engine writes. infer converts its wav to the others: pcm and mp3 by itself, opus, aac and flac with ffmpeg.',
      example: ['wav'],
      with: kokoro,
      absent: 'all',
    }),
  speech_input: z.int().min(1).max(longestSpeechInput).optional().meta({
    description: 'Maximum length of one text.',
    unit: 'characters',
    example: 10_000,
    with: kokoro,
    absent: '4096',
  }),
}

const SandboxPath = z
  .string()
  .regex(/^\/[^\0\n]*[^/\0\n]$/, 'Write an absolute path such as /srv/engine, and not the root folder.')

/** The other keys of the model in each example. */
const vllm = { id: 'llama-70b', engine: 'vllm', source: 'meta-llama/Llama-3.3-70B-Instruct' }
const custom = { id: 'mine', engine: 'custom', command: ['python3', 'serve.py', '--port', '{port}'] }
const remote = { id: 'hosted', engine: 'remote', url: 'https://api.example.com/v1' }

/** Keys of a model about how its engine is started or reached, and what the engine can access on this machine. */
export const launchFields = {
  args: z
    .array(z.string())
    .default([])
    .meta({
      description: 'Arguments that are appended to the command line of the engine, unchanged.',
      example: ['--max-model-len', '16384'],
      with: vllm,
    }),
  command: z
    .array(z.string())
    .min(1)
    .optional()
    .meta({
      description:
        '`custom` and `comfyui` only: program and arguments. For comfyui the Python of its environment and its main.py, where it was not installed by `infer engine setup comfyui`; infer adds the address and the folders. For custom, {port} or {socket} stands for the address to listen on, {model} for `source`, {id} for `upstream_id`, {threads} for a fitting number of threads.',
      example: ['python3', 'serve.py', '--port', '{port}'],
      with: custom,
      absent: 'none; required for custom',
    }),
  engine_version: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/, 'Write the name of a version, such as b11101.')
    .optional()
    .meta({
      description:
        '`llama-server`, `sd-server`, `vllm`, `sglang`, `comfyui` and `python` only: the installed version that runs the model, which `infer engine update` then leaves as it is. It is installed with `infer engine setup`; see `infer engine list`.',
      example: 'b11101',
      with: { id: 'qwen3-8b', engine: 'llama-server', source: '/models/qwen3-8b.gguf' },
      absent: 'the current one, else the program on the PATH',
    }),
  env: z
    .record(z.string(), z.string())
    .default({})
    .meta({
      description: 'Environment variables for the engine. It gets these and few others, not those of the server.',
      example: { VLLM_LOGGING_LEVEL: 'WARNING' },
      with: vllm,
    }),
  sandbox: z.enum(sandboxLevels).optional().meta({
    description:
      'What the engine can reach on this machine. `strict`: its model and its own folders, no network; for engines on a Unix socket. `files`: also the network and the cache of the model hub. `none`: everything that the user of infer can reach. With a level that this machine cannot enforce the model is unavailable.',
    example: 'strict',
    absent:
      'strict for gguf, python, espeak-ng and demo, files for others; less, with a warning, where it cannot be enforced',
  }),
  sandbox_read: z
    .array(SandboxPath)
    .default([])
    .meta({
      description:
        'Files and folders that the engine can read, besides its model, its program and the paths in its command. Those that do not exist are left out, with a warning in the log.',
      example: ['/srv/voices'],
      with: custom,
    }),
  sandbox_write: z
    .array(SandboxPath)
    .default([])
    .meta({
      description:
        'Files, folders and devices that the engine can write, besides its own folders. Those that do not exist are left out, with a warning in the log.',
      example: ['/srv/engine-cache'],
      with: custom,
    }),
  health_path: z.string().startsWith('/').optional().meta({
    description: '`custom`, `remote` and `infer` only: path that answers 2xx once the engine can work.',
    example: '/ready',
    with: custom,
    absent: '/health for custom, /readyz for infer; remote is taken to be ready',
  }),
  url: HttpUrl.optional().meta({
    description:
      '`remote` and `infer` only: base address of the server, with /v1 where it has that. Of another infer without a path.',
    example: 'https://api.example.com/v1',
    with: remote,
    absent: 'none; required for infer, and for remote without `urls`',
  }),
  urls: z
    .array(HttpUrl)
    .min(1)
    .max(64)
    .optional()
    .meta({
      description:
        '`remote` only, in place of `url`: base addresses of several servers that serve the model alike. A request goes to the one with the least work. One that fails gets none for a while, and a request of which nothing was answered goes to another.',
      example: ['http://box-1:8000/v1', 'http://box-2:8000/v1'],
      with: { id: 'hosted', engine: 'remote' },
      absent: 'none',
    }),
  region: z.enum(regionLabels).optional().meta({
    description: '`remote` and `infer` only: region in which the server is. See `region` of this machine.',
    example: 'US',
    with: remote,
    absent: 'none: the server counts as being in no region',
  }),
  api_key_env: z.string().optional().meta({
    description:
      '`remote` and `infer` only: environment variable of this server that holds the key of the other one, sent as bearer token.',
    example: 'EXAMPLE_KEY',
    with: remote,
    absent: 'none: no key is sent',
  }),
  protocol: z
    .enum(['infer', 'openai'])
    .optional()
    .meta({
      description:
        "`custom` and `remote` only: how images and videos are requested. `infer`: by the protocol of infer, POST /v1/generate. `openai`: by OpenAI's routes /v1/images/generations, /v1/images/edits and /v1/videos.",
      example: 'openai',
      with: { ...remote, tasks: tasksBy('create-image') },
      absent: 'infer',
    }),
  upstream_id: z.string().optional().meta({
    description: 'Name of the model in requests to the engine.',
    example: 'gpt-oss-120b',
    absent: 'the id',
    with: remote,
  }),
}
