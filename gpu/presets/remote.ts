import { definePreset } from './preset.ts'
import { assumedAbilities } from './routes.ts'

/** The path of the URL, which replaces `/v1` of every route; without a path `/v1` stays. */
const basePath = (url: string | undefined): string => (url ? new URL(url).pathname.replace(/\/+$/, '') : '')

/** A server that infer does not run: no process, no memory. It is ready unless its `health_path`, if set, fails. */
export const remote = definePreset({
  name: 'remote',
  runsOn: 'elsewhere',
  assumesRoutes: true,
  settings: ['protocol'],
  configurationFault: model => (model.url ? undefined : "it needs 'url', the address of the server."),
  slots: 64,
  sandbox: undefined,
  command: () => [],
  key: (model, _launchKey, environment) => (model.api_key_env ? environment[model.api_key_env] : undefined),
  address: model => (model.url ? new URL(model.url).origin : undefined),
  healthPath: model => model.health_path ?? null,
  // infer does not load it: when it is down, waiting longer does not help.
  loadStallMs: model => Math.min(model.load_timeout, 5_000),
  abilities: model => ({ ...assumedAbilities(model, basePath(model.url)), isElsewhere: true }),
})
