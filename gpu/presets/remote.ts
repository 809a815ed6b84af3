import { everything, type Preset, traitsFor } from './preset.ts'
import { refusal } from './refusal.ts'
import { everyRoute } from './routes.ts'

/** The address's own path, which goes before every route: `https://host/v1` and `https://host` both work. */
const base = (url: string | undefined): string => (url ? new URL(url).pathname.replace(/\/+$/, '') : '')

/** A server that somebody else runs. No process, no memory; it counts as ready unless its health, if named, fails. */
export const remote: Preset = {
  name: 'remote',
  runsOn: 'elsewhere',
  assumesRoutes: true,
  lacks: model => (model.url ? undefined : "it needs 'url', the address of the server."),
  slots: 64,
  channel: () => 'port',
  command: () => [],
  env: () => ({}),
  key: (model, _launchKey, environment) => (model.api_key_env ? environment[model.api_key_env] : undefined),
  address: model => (model.url ? new URL(model.url).origin : undefined),
  healthPath: model => model.health_path ?? null,
  // It does not load at our bidding: if it is down, waiting longer does not help.
  loadStallMs: model => Math.min(model.load_timeout, 5_000),
  keepAliveMs: 4_000,
  traits: model => {
    const prefix = base(model.url)
    const routes = everyRoute()
    if (prefix !== '') for (const route of Object.values(routes)) route.path = prefix + route.path.slice('/v1'.length)
    return traitsFor(model, {
      routes,
      features: everything,
      rerankScores: 'probability',
      scoreBy: 'score',
      dimensions: false,
      base64: true,
      streamUsage: 'end',
      namedTool: true,
      promptLists: true,
    })
  },
  failureOf: (status, body) => refusal(status, body),
}
