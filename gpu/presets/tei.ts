import { definePreset, scoreByRerank } from './preset.ts'
import { routesOf } from './routes.ts'

/** The most inputs and bytes of one request. Its own limits, 32 and 2 MB, are below those of infer. */
const maxInputs = 2048
const maxBytes = 32 << 20
/** Its default for the most tokens of a batch. */
const batchTokens = 16_384

/**
 * Text Embeddings Inference 1.9, one model on one GPU or on the processor. It opens its port after the warm-up. The port of
 * its metrics is chosen by the system, because two engines would collide on the default one. Source: its `main.rs` of
 * 1.9.3; run on the processor, not on a GPU.
 */
export const tei = definePreset({
  name: 'tei',
  image: () => ({
    name: 'ghcr.io/huggingface/text-embeddings-inference:latest',
    program: 'text-embeddings-router',
  }),
  installation: {
    program: 'text-embeddings-router',
    advice: "Install Text Embeddings Inference, so that 'text-embeddings-router' is on the PATH.",
  },
  configurationFault: ({ devices }) =>
    typeof devices === 'number' && devices > 1
      ? 'one process uses one GPU. Set devices: 1, and replicas for more.'
      : undefined,
  slots: 64,
  command: (model, { slots, threads }) => [
    ['text-embeddings-router', '--model-id', model.source ?? model.id],
    // Without --hostname it takes the variable HOSTNAME, which is the name of the machine.
    ['--hostname', '127.0.0.1', '--port', '{port}', '--prometheus-port', '0'],
    // It counts every input as a request, and refuses those above the number.
    ['--max-concurrent-requests', String(slots * maxInputs), '--max-client-batch-size', String(maxInputs)],
    ['--payload-limit', String(maxBytes), '--tokenization-workers', String(threads)],
    // Without cutting it does not start when the longest text is longer than a batch.
    (model.context_length ?? 0) > batchTokens ? ['--max-batch-tokens', String(model.context_length)] : [],
    model.args,
  ],
  // Since 1.9 it cuts texts that are too long by default, and callers would not notice. A variable, because 1.8 has a flag
  // without a value.
  env: (_model, key) => ({ API_KEY: key, AUTO_TRUNCATE: 'false' }),
  abilities: model => ({
    routes: {
      ...routesOf({ openaiText: ['embed'] }),
      ...routesOf({ openaiText: ['rerank'] }, { path: '/rerank' }),
    },
    scoreBy: scoreByRerank(model),
    rerankField: 'texts',
    base64: true,
  }),
  // 424 is an error of its backend; 413 and 422 name the mistake in the request. Source: router/src/http/server.rs of 1.9.3.
  quirks: [{ status: 413, pattern: /batch size/i, code: 'invalid_value' }],
})
