import { definePreset, ownCommand, ownEngine, upstreamId } from './preset.ts'
import { routesOf } from './routes.ts'

/**
 * The program espeak-ng, installed by the operator, behind a small server of this executable. It has no model and starts
 * within milliseconds; its voices are languages. Tried with espeak-ng 1.51.
 */
export const espeakNg = definePreset({
  name: 'espeak-ng',
  runsOn: 'cpu',
  installation: { program: 'espeak-ng', advice: 'Install it (Debian, Ubuntu: sudo apt install espeak-ng).' },
  configurationFault: model => (model.source ? "it has no 'source': its voices are part of the program." : undefined),
  programs: () => [{ name: 'espeak-ng' }],
  memory: 192 * 2 ** 20,
  slots: 4,
  ...ownEngine,
  sandbox: { level: 'strict', isOwn: true, programs: ['espeak-ng'] },
  command: model => ownCommand(['espeak', '--id', upstreamId(model), '--socket', '{socket}'], model.args),
  abilities: () => ({ routes: routesOf({ openaiAudio: ['synthesize'] }), speech: { formats: ['wav', 'pcm'] } }),
})
