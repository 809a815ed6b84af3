import type { Model } from '../../core/models/model.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { noText, type Preset, traitsFor } from './preset.ts'
import { type Quirk, refusal } from './refusal.ts'

/**
 * Source: whisper.cpp 1.9's server, run and read. Whatever it refuses it calls `Invalid request`, and other refusals
 * become `File Not Found`; the sound is one that we have made and the route is ours, so neither is the caller's mistake.
 */
const quirks: Quirk[] = [{ status: 400, says: /invalid request/i, code: 'worker_error' }]

const path = openaiAudio.paths['std/audio-transcription']!
const route = { protocol: openaiAudio.name, path }

/**
 * whisper.cpp's own server, where the operator has it. It opens its port when the model is loaded, does one request at a
 * time, says nothing while it works and stops when its caller hangs up. It reads no M4A and no WebM, which does not
 * matter: engines are sent WAV always.
 */
export const whisperServer: Preset = {
  name: 'whisper-server',
  runsOn: 'either',
  lacks(model) {
    if (!model.source) return "it needs 'source', the ggml file of a Whisper model."
    return (model.concurrency ?? 1) > 1 ? "it does one request at a time, so its 'concurrency' must be 1." : undefined
  },
  slots: 1,
  channel: () => 'port',
  sandbox: { level: 'files' },
  command: (model: Model, { threads, gpus }) =>
    [
      ['whisper-server', '-m', model.source ?? '', '--host', '127.0.0.1', '--port', '{port}'],
      ['--inference-path', path, '-t', String(threads), '-l', 'auto'],
      gpus > 0 ? [] : ['-ng'],
      model.args,
    ].flat(),
  env: () => ({}),
  // It knows no keys; nobody but this machine reaches its port.
  key: () => undefined,
  address: () => undefined,
  healthPath: () => '/health',
  loadStallMs: model => model.load_timeout,
  keepAliveMs: 4_000,
  traits: model =>
    traitsFor(model, {
      ...noText,
      // It has one route: a translation is asked for by a field.
      routes: { 'std/audio-transcription': route, 'std/audio-translation': route },
      translateField: true,
      features: ['segments', 'words'],
    }),
  failureOf: (status, body) => refusal(status, body, quirks),
}
