import { z } from 'zod'
import { Bytes, Duration } from '../quantities.ts'

/** Keys of a model about its devices, its memory, its number of concurrent requests and its timeouts. */
export const residencyFields = {
  memory: Bytes.optional().meta({
    description: 'Device memory that one engine of the model needs, on all its devices together.',
    example: '24GB',
    absent:
      'estimated from the model file; without an estimate (a name on the hub) the engine gets its devices for itself',
  }),
  devices: z
    .union([z.literal('cpu'), z.number().int().min(1)])
    .default(1)
    .meta({
      description:
        'Number of GPUs that one engine uses, or `cpu`. Engines that can do without a GPU use the processor where there is none.',
      unit: 'GPUs',
      example: 2,
      with: { id: 'llama-70b', engine: 'vllm', source: 'meta-llama/Llama-3.3-70B-Instruct' },
    }),
  replicas: z
    .strictObject({
      min: z.number().int().min(0).default(0).meta({
        description: 'Engines that are loaded at the start and stay loaded. They are never unloaded for other models.',
        unit: 'engines',
        example: 1,
      }),
      max: z.number().int().min(1).default(1).meta({
        description: 'Engines that run at most. A further one is started when requests wait and memory is free.',
        unit: 'engines',
        example: 2,
      }),
    })
    .default({ min: 0, max: 1 })
    .meta({ description: 'How many engines of the model run at a time.', example: { min: 1, max: 2 } }),
  concurrency: z.number().int().min(1).max(4096).optional().meta({
    description:
      'Slots: requests that one engine works on at a time. `gguf` takes 256 at most, `whisper-server` and `sd-server` 1.',
    unit: 'requests',
    example: 8,
    absent:
      '4 for gguf and llama-server, 256 for vllm, 128 for sglang, 64 for tei, infinity and remote, 16 for custom, 4 for speaches and kokoro-fastapi, 2 for demo, 1 for whisper-server, sd-server, comfyui, vllm-omni and sglang-diffusion',
  }),
  max_queue: z.number().int().min(0).default(512).meta({
    description:
      'Synchronous requests that may wait for a free slot; further ones get 429 `queue_full`. While the model loads, as many more may wait as it will have slots.',
    unit: 'requests',
    example: 64,
  }),
  idle_ttl: Duration.default(300_000).meta({
    description: 'Time without a request after which the model is unloaded. 0 keeps it until another needs the memory.',
    example: '30m',
  }),
  dispatch_wait_ms: Duration.default(30_000).meta({
    description: 'Time that a synchronous request waits while the model loads or is busy; then it gets 503.',
    example: '2m',
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
