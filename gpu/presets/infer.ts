import { Failure } from '../../core/failure.ts'
import { relayedHeader } from '../../core/models/relayed-header.ts'
import { definePreset } from './preset.ts'
import { assumedAbilities } from './routes.ts'

/** What the refusals of the other infer mean here, which its own sentences do not say to callers of this one. */
const refusals: Readonly<Record<string, string>> = {
  missing_api_key: "The other infer needs a token: name its variable in 'api_key_env'.",
  invalid_api_key: "The other infer does not know the token in the variable that 'api_key_env' names.",
  token_revoked: "The other infer has revoked or disabled the token in the variable that 'api_key_env' names.",
  token_expired: "The token of the other infer in the variable that 'api_key_env' names has expired.",
  organization_disabled: 'The other infer has suspended the organization of the token that it is called with.',
  model_not_allowed:
    'The other infer refuses the model: the token of this server may not use it, or it is itself a model of another infer. Requests are passed on once only.',
  quota_exceeded: 'The budget of the token with which the other infer is called is used up.',
}

/**
 * A model of another infer: no process and no memory here. Its routes are those of infer, and the other one refuses to pass
 * its requests on once more.
 */
export const infer = definePreset({
  name: 'infer',
  runsOn: 'elsewhere',
  assumesRoutes: true,
  takesTrace: true,
  configurationFault({ url, urls }) {
    if (urls !== undefined) return "it has one address: write it as 'url'."
    if (url === undefined) return "it needs 'url', the address of the other infer, such as http://other-box:8787."
    return new URL(url).pathname === '/' ? undefined : "'url' is an address without a path: http://other-box:8787."
  },
  // Trying again would not help.
  refusal: code =>
    Object.hasOwn(refusals, code) ? new Failure('worker_error', refusals[code]!, { final: true }) : undefined,
  slots: 64,
  sandbox: undefined,
  command: () => [],
  key: (model, _launchKey, environment) => (model.api_key_env ? environment[model.api_key_env] : undefined),
  headers: [relayedHeader, '1'],
  addresses: ({ url }) => (url === undefined ? [] : [new URL(url).origin]),
  healthPath: ({ health_path }) => health_path ?? '/readyz',
  // infer does not load it: when it is down, waiting longer does not help.
  loadStallMs: model => Math.min(model.load_timeout, 5_000),
  abilities: model => ({ ...assumedAbilities({ ...model, protocol: 'openai' }, '/std/v1'), isElsewhere: true }),
})
