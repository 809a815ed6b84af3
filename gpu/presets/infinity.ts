import { definePreset, onLoopback, scoreByRerank, upstreamId } from './preset.ts'
import { routesOf } from './routes.ts'

/** Infinity, one model per process. It opens its port after the warm-up. Tried with 0.0.78 and transformers 4.57 on the processor. */
export const infinity = definePreset({
  name: 'infinity',
  image: () => ({ name: 'michaelf34/infinity:latest', program: 'infinity_emb' }),
  installation: { program: 'infinity_emb', advice: "Install it with: pip install 'infinity-emb[all]'" },
  slots: 64,
  command: (model, { gpus }) => [
    ['infinity_emb', 'v2', '--model-id', model.source ?? model.id, '--served-model-name', upstreamId(model)],
    onLoopback,
    ['--url-prefix', '/v1', '--engine', 'torch', '--device', gpus > 0 ? 'cuda' : 'cpu'],
    model.args,
  ],
  env: (_model, key) => ({
    INFINITY_API_KEY: key,
    INFINITY_ANONYMOUS_USAGE_STATS: '0',
    DO_NOT_TRACK: '1',
    // Its cache, in the home of the engine. The folder of the hub, its default, is read-only in the sandbox.
    INFINITY_HOME: '.',
  }),
  abilities: model => ({ routes: routesOf({ openaiText: ['embed', 'rerank'] }), scoreBy: scoreByRerank(model) }),
})
