import type { Model } from '../../core/models/model.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { definePreset, needsSource, oneAtATime, type Quirk } from './preset.ts'

/**
 * The server answers every refusal with `Invalid request` or `File Not Found`. infer wrote the audio and chose the
 * route, so neither is the caller's mistake. Source: the server of whisper.cpp 1.9, tried and read.
 */
const quirks: Quirk[] = [{ status: 400, pattern: /invalid request/i, code: 'worker_error' }]

const path = openaiAudio.paths.transcribe!
const route = { protocol: openaiAudio.name, path }

/**
 * The server of whisper.cpp, installed by the operator. It opens its port when the model is loaded, processes one
 * request at a time, sends nothing while it works, and stops when the client disconnects. It reads neither M4A nor
 * WebM; infer always sends WAV.
 */
export const whisperServer = definePreset({
  name: 'whisper-server',
  installation: () => ({
    program: 'whisper-server',
    advice: "Install whisper.cpp, so that 'whisper-server' is on the PATH.",
  }),
  configurationFault: model =>
    needsSource(model, 'the ggml file of a Whisper model') ?? oneAtATime(model, 'processes one request'),
  slots: 1,
  command: (model: Model, { threads, gpus }) =>
    [
      ['whisper-server', '-m', model.source ?? '', '--host', '127.0.0.1', '--port', '{port}'],
      ['--inference-path', path, '-t', String(threads), '-l', 'auto'],
      gpus > 0 ? [] : ['-ng'],
      model.args,
    ].flat(),
  // It supports no keys; its port can be reached from this machine only.
  key: () => undefined,
  abilities: () => ({
    // It has one route: a field requests the translation.
    routes: { transcribe: route, translate: route },
    translateField: true,
    features: ['segments', 'words'],
  }),
  quirks,
})
