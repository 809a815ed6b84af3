import { definePreset, noKey, onLoopback } from './preset.ts'
import { routesOf } from './routes.ts'

/**
 * Kokoro-FastAPI, an ASGI application: `source` is the folder of its repository, and the `uvicorn` of its environment starts
 * it. It opens its port when the model is loaded and warmed up, and uses the processor where it finds no GPU. Source: its
 * `main.py` and `config.py` of 0.8.1, run on the processor with random weights.
 */
export const kokoroFastapi = definePreset({
  name: 'kokoro-fastapi',
  installation: { advice: 'Install Kokoro-FastAPI. See: infer help engines' },
  environments: () => ['kokoro-fastapi'],
  configurationFault: ({ source }) =>
    source?.startsWith('/')
      ? undefined
      : "it needs 'source', the absolute path of the folder of Kokoro-FastAPI with its downloaded model.",
  slots: 4,
  command: ({ args }) => ['uvicorn', 'api.src.main:app', onLoopback, args],
  env: ({ source = '' }) => ({
    USE_GPU: 'true',
    PYTHONPATH: `${source}:${source}/api`,
    MODEL_DIR: `${source}/api/src/models`,
    VOICES_DIR: `${source}/api/src/voices/v1_0`,
    ENABLE_WEB_PLAYER: 'false',
    // Its default, DEBUG, logs the texts of requests.
    API_LOG_LEVEL: 'INFO',
  }),
  key: noKey,
  abilities: () => ({ routes: routesOf({ openaiAudio: ['synthesize'] }) }),
  // It knows its model by this name only.
  upstreamId: model => model.upstream_id ?? 'kokoro',
})
