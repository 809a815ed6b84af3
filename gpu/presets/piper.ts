import { dirname } from 'node:path'
import { definePreset, noKey, onLoopback } from './preset.ts'
import { routesOf } from './routes.ts'

/**
 * The server of piper1-gpl with one voice, or with all voices in the folder of this one. It answers a text for an unknown
 * voice with its default one, so list the `voices` of the model. Every mistake is a 500 without a reason. Tried with
 * version 1.8.
 */
export const piper = definePreset({
  name: 'piper',
  runsOn: 'cpu',
  installation: {
    program: 'piper',
    environments: ['speech'],
    advice: 'Install it with: infer engine setup speech',
  },
  environments: ({ environment = 'speech' }) => [environment],
  settings: ['environment'],
  configurationFault: ({ source }) =>
    source?.startsWith('/') && source.endsWith('.onnx')
      ? undefined
      : "it needs 'source', the absolute path of the .onnx file of a voice. Beside it must be its .onnx.json.",
  slots: 1,
  // Other voices of the folder are loaded when they are requested.
  sandbox: { level: 'files', reads: ({ source = '/' }) => [dirname(source)] },
  command: ({ source = '', args }) => [
    ['python3', '-m', 'piper.http_server', '-m', source, '--data-dir', dirname(source)],
    onLoopback,
    args,
  ],
  env: () => ({ PYTHONUNBUFFERED: '1', PYTHONDONTWRITEBYTECODE: '1' }),
  key: noKey,
  healthPath: () => '/info',
  keepAliveMs: 1_000,
  abilities: () => ({ routes: routesOf({ piper: 'all' }), speech: { formats: ['wav'] } }),
})
