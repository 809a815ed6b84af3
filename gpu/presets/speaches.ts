import type { Model } from '../../core/models/model.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { noText, type Preset, traitsFor } from './preset.ts'
import { refusal } from './refusal.ts'
import { routesOf } from './routes.ts'

/** It knows models by their name on the model hub. */
const upstreamId = ({ upstream_id, source, id }: Model): string => upstream_id ?? source ?? id

/**
 * Speaches 0.8, an ASGI application: the `uvicorn` of its environment starts it. It loads models on demand and unloads them
 * by itself, so the model is loaded at the start and kept: infer decides when it is unloaded. From general knowledge of it: not tried here.
 */
export const speaches: Preset = {
  name: 'speaches',
  runsOn: 'either',
  configurationFault: () => undefined,
  slots: 4,
  channel: () => 'port',
  sandbox: { level: 'files' },
  command: ({ args }) =>
    [['uvicorn', '--factory', 'speaches.main:create_app', '--host', '127.0.0.1', '--port', '{port}'], args].flat(),
  env: (model, key) => ({
    API_KEY: key,
    ENABLE_UI: 'false',
    PRELOAD_MODELS: JSON.stringify([upstreamId(model)]),
    STT_MODEL_TTL: '-1',
    TTS_MODEL_TTL: '-1',
  }),
  key: (_model, launchKey) => launchKey,
  address: () => undefined,
  healthPath: () => '/health',
  loadStallMs: model => model.load_timeout,
  keepAliveMs: 4_000,
  traits: model => ({
    ...traitsFor(model, { ...noText, routes: routesOf([openaiAudio]), features: ['segments', 'words'] }),
    upstreamId: upstreamId(model),
  }),
  failureOf: (status, body) => refusal(status, body),
}
