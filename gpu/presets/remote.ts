import type { Model } from '../../core/models/model.ts'
import { definePreset } from './preset.ts'
import { assumedAbilities } from './routes.ts'

/** The base addresses of the server. */
const urlsOf = ({ url, urls }: Model): readonly string[] => urls ?? (url === undefined ? [] : [url])

function addressFault(model: Model): string | undefined {
  const { url, urls = [] } = model
  if (url !== undefined && urls.length > 0) return "it has 'url' and 'urls'. Write all addresses in 'urls'."
  if (urlsOf(model).length === 0) return "it needs 'url', the address of the server, or 'urls' for several."
  if (new Set(urls).size < urls.length) return "'urls' has an address twice. Remove one."
  const other = urls.find(one => basePath(one) !== basePath(urls[0]))
  return other && `all 'urls' must have the same path: '${basePath(urls[0])}' is not '${basePath(other)}'.`
}

/** The path of the URL, which replaces `/v1` of every route; without a path `/v1` stays. */
const basePath = (url: string | undefined): string => (url ? new URL(url).pathname.replace(/\/+$/, '') : '')

/** A server that infer does not run: no process, no memory. It is ready unless its `health_path`, if set, fails. */
export const remote = definePreset({
  name: 'remote',
  runsOn: 'elsewhere',
  assumesRoutes: true,
  settings: ['protocol'],
  configurationFault: addressFault,
  slots: 64,
  sandbox: undefined,
  command: () => [],
  key: (model, _launchKey, environment) => (model.api_key_env ? environment[model.api_key_env] : undefined),
  addresses: model => urlsOf(model).map(url => new URL(url).origin),
  healthPath: model => model.health_path ?? null,
  // infer does not load it: when it is down, waiting longer does not help.
  loadStallMs: model => Math.min(model.load_timeout, 5_000),
  abilities: model => ({ ...assumedAbilities(model, basePath(urlsOf(model)[0])), isElsewhere: true }),
})
