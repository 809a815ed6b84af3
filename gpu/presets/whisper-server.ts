import { definePreset, needsSource, noKey, oneAtATime, onLoopback } from './preset.ts'
import { routesOf } from './routes.ts'

/** It has one route: a field requests the translation. */
const path = '/v1/audio/transcriptions'

/**
 * The server of whisper.cpp, installed by the operator. It opens its port when the model is loaded, processes one
 * request at a time, sends nothing while it works, and stops when the client disconnects. It reads neither M4A nor
 * WebM; infer always sends WAV.
 */
export const whisperServer = definePreset({
  name: 'whisper-server',
  usesVulkan: true,
  takesThreads: true,
  installation: { program: 'whisper-server', advice: "Install whisper.cpp, so that 'whisper-server' is on the PATH." },
  configurationFault: model =>
    needsSource(model, 'the ggml file of a Whisper model') ?? oneAtATime(model, 'processes one request'),
  slots: 1,
  command: (model, { threads, gpus }) => [
    ['whisper-server', '-m', model.source ?? '', ...onLoopback],
    ['--inference-path', path, '-t', String(threads), '-l', 'auto'],
    gpus > 0 ? [] : '-ng',
    model.args,
  ],
  key: noKey,
  abilities: () => ({
    routes: routesOf({ openaiAudio: ['transcribe', 'translate'] }, { path }),
    translateField: true,
    features: ['segments', 'words'],
  }),
  // It answers every refusal with `Invalid request` or `File Not Found`. infer wrote the audio and chose the route, so
  // neither is the caller's mistake. Source: the server of whisper.cpp 1.9, tried and read.
  quirks: [{ status: 400, pattern: /invalid request/i, code: 'worker_error' }],
})
