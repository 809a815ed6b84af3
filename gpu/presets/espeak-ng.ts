import { selfCommand } from '../../core/assets.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { noText, type Preset, traitsFor } from './preset.ts'
import { engineRefusal } from './refusal.ts'
import { routesOf } from './routes.ts'

/**
 * The program espeak-ng, installed by the operator, behind a small server of this executable. It has no model and starts
 * within milliseconds; its voices are languages. Tried with espeak-ng 1.51.
 */
export const espeakNg: Preset = {
  name: 'espeak-ng',
  runsOn: 'cpu',
  installation: () => ({ program: 'espeak-ng', advice: 'Install it (Debian, Ubuntu: sudo apt install espeak-ng).' }),
  configurationFault: model => (model.source ? "it has no 'source': its voices are part of the program." : undefined),
  programs: () => [{ name: 'espeak-ng' }],
  memory: 192 * 2 ** 20,
  slots: 4,
  channel: () => 'socket',
  sandbox: { level: 'strict', isOwn: true, programs: ['espeak-ng'] },
  command(model) {
    const own = ['engine', 'espeak', '--id', model.upstream_id ?? model.id, '--socket', '{socket}']
    const { file, args } = selfCommand([...own, ...model.args])
    return [file, ...args]
  },
  env: (_model, key) => ({ ...selfCommand([]).env, INFER_ENGINE_KEY: key }),
  key: (_model, launchKey) => launchKey,
  address: () => undefined,
  healthPath: () => '/health',
  loadStallMs: model => model.load_timeout,
  keepAliveMs: 110_000,
  traits: model =>
    traitsFor(model, {
      ...noText,
      routes: routesOf([openaiAudio], ['synthesize']),
      speech: { formats: ['wav', 'pcm'] },
      features: [],
    }),
  failureOf: (status, body) => engineRefusal(status, body),
}
