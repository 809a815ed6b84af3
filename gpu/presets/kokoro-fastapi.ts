import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { noText, type Preset, traitsFor } from './preset.ts'
import { engineRefusal } from './refusal.ts'
import { routesOf } from './routes.ts'

/**
 * Kokoro-FastAPI, an ASGI application: `source` is the folder of its repository, and the `uvicorn` of its environment starts
 * it. It opens its port when the model is loaded and warmed up, and uses the processor where it finds no GPU. Source: its
 * `main.py` and `config.py` of 0.8.1, run on the processor with random weights.
 */
export const kokoroFastapi: Preset = {
  name: 'kokoro-fastapi',
  runsOn: 'either',
  installation: () => ({ advice: 'Install Kokoro-FastAPI. See: infer help engines' }),
  environments: () => ['kokoro-fastapi'],
  configurationFault: ({ source }) =>
    source?.startsWith('/')
      ? undefined
      : "it needs 'source', the absolute path of the folder of Kokoro-FastAPI with its downloaded model.",
  slots: 4,
  channel: () => 'port',
  sandbox: { level: 'files' },
  command: ({ args }) => [['uvicorn', 'api.src.main:app', '--host', '127.0.0.1', '--port', '{port}'], args].flat(),
  env: ({ source = '' }) => ({
    USE_GPU: 'true',
    PYTHONPATH: `${source}:${source}/api`,
    MODEL_DIR: `${source}/api/src/models`,
    VOICES_DIR: `${source}/api/src/voices/v1_0`,
    ENABLE_WEB_PLAYER: 'false',
    // Its default, DEBUG, logs the texts of requests.
    API_LOG_LEVEL: 'INFO',
  }),
  // It supports no keys; its port can be reached from this machine only.
  key: () => undefined,
  address: () => undefined,
  healthPath: () => '/health',
  loadStallMs: model => model.load_timeout,
  keepAliveMs: 4_000,
  traits: model => ({
    ...traitsFor(model, { ...noText, routes: routesOf([openaiAudio], ['synthesize']), features: [] }),
    // It knows its model by this name only.
    upstreamId: model.upstream_id ?? 'kokoro',
  }),
  failureOf: (status, body) => engineRefusal(status, body),
}
