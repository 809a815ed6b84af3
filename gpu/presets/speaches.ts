import type { Model } from '../../core/models/model.ts'
import { definePreset, onLoopback } from './preset.ts'
import { routesOf } from './routes.ts'

/** It knows models by their name on the model hub. */
const upstreamId = ({ upstream_id, source, id }: Model): string => upstream_id ?? source ?? id

/**
 * Speaches reads a file and a folder of its repository from the working folder and does not start without the folder.
 * Neither is needed here: the file maps aliases of models, the folder holds a web page.
 */
const start =
  'mkdir -p realtime-console/dist && { [ -e model_aliases.json ] || echo "{}" > model_aliases.json; } && exec "$@"'

/**
 * Speaches 0.8.3, an ASGI application: the `uvicorn` of its environment starts it. It loads a model with the first request
 * and finds it in the cache of the model hub. `PRELOAD_MODELS` would only download, and fails without a network. Models
 * are never unloaded by it, because infer decides that. Source: its `main.py` and `config.py`, run on the processor.
 * Its last event of a stream has an empty text, and an unknown voice of Kokoro breaks the answer after its head.
 */
export const speaches = definePreset({
  name: 'speaches',
  installation: { advice: 'Install Speaches. See: infer help engines' },
  environments: () => ['speaches'],
  configurationFault: model =>
    upstreamId(model).startsWith('/')
      ? "it finds models by their name in the cache of the model hub. Set 'source' to that name, for example Systran/faster-whisper-tiny."
      : undefined,
  slots: 4,
  sandbox: { level: 'files', programs: ['uvicorn'] },
  command: ({ args }) => [
    ['sh', '-c', start, 'speaches'],
    ['uvicorn', '--factory', 'speaches.main:create_app', ...onLoopback],
    args,
  ],
  env: (_model, key) => ({
    API_KEY: key,
    ENABLE_UI: 'false',
    // Its default, debug, logs the texts of requests.
    LOG_LEVEL: 'info',
    STT_MODEL_TTL: '-1',
    TTS_MODEL_TTL: '-1',
    HF_HUB_DISABLE_TELEMETRY: '1',
    PYANNOTE_METRICS_ENABLED: '0',
    DO_NOT_TRACK: '1',
  }),
  abilities: () => ({
    routes: routesOf({ openaiAudio: 'all' }),
    features: ['segments', 'words', 'transcription_stream'],
    vadFilter: true,
  }),
  upstreamId,
})
