import { z } from 'zod'
import { regionLabels } from '../schemas/region.ts'
import { sandboxLevels } from '../schemas/sandbox-level.ts'
import { tasksBy } from '../schemas/task.ts'

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
        '`custom` and `comfyui` only: program and arguments. For comfyui the Python of its environment and its main.py; infer adds the address and the folders. For custom, {port} or {socket} stands for the address to listen on, {model} for `source`, {id} for `upstream_id`, {threads} for a fitting number of threads.',
      example: ['python3', 'serve.py', '--port', '{port}'],
      with: custom,
      absent: 'none; required for custom and comfyui',
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
      'What the engine can reach on this machine. `strict`: its model and its own folders, no network; for engines on a Unix socket. `files`: also the network, but no files of the server or of users. `none`: everything that the user of infer can reach. With a level that this machine cannot enforce the model is unavailable.',
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
    description: '`custom` and `remote` only: path that answers 2xx once the engine can work.',
    example: '/ready',
    with: custom,
    absent: '/health for custom; remote is taken to be ready',
  }),
  url: z.url().optional().meta({
    description: '`remote` only: base address of the server, with /v1 where it has that.',
    example: 'https://api.example.com/v1',
    with: remote,
    absent: 'none; required for remote',
  }),
  region: z.enum(regionLabels).optional().meta({
    description: '`remote` only: region in which the server is. See `region` of this machine.',
    example: 'US',
    with: remote,
    absent: 'none: the server counts as being in no region',
  }),
  api_key_env: z.string().optional().meta({
    description: '`remote` only: environment variable of infer that holds the key of the server, sent as bearer token.',
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
