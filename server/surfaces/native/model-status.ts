import { z } from 'zod'
import { modelAllowed } from '../../../core/accounts/model-allowed.ts'
import { integer, nullableString } from '../../../core/schemas/fields.ts'
import { ownsMachine } from '../../http/access/machine-owner.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { ModelStatus, modelStatusView } from '../../views/model-status.ts'

const route = routeOf({ tag: 'Models' })

const Configuration = z
  .object({
    read_at: integer('Unix seconds at which it was last read.'),
    fault: nullableString(
      'What is wrong in `infer.yaml`, so that an earlier version stays in force; null if nothing is.',
    ),
    restart_for: z.array(z.string()).describe('Changed settings that take effect at the next start of the server.'),
  })
  .meta({ id: 'ConfigurationStatus', description: 'Whether the configuration file is in force.' })

const ModelStatusList = z
  .object({
    models: z.array(ModelStatus).describe('Models that the token may use.'),
    configuration: Configuration.optional().describe(
      'State of the configuration file. Only for tokens with the scope `admin:read` of the organization that owns the machine.',
    ),
  })
  .meta({ id: 'ModelStatusList', description: 'The states of models.' })

/** The route that lists the states of models. */
export const modelStatusRoutes = (owners: Pick<Owners, 'config' | 'fleet' | 'jobs' | 'registry' | 'reload'>) => [
  route('GET /api/model-status', 'user:read', {
    summary: 'List model status',
    description:
      'Returns for each model whether it is loaded, how many requests wait for it, why it is unavailable, its slugs, and the JSON Schemas of its requests.',
    response: ModelStatusList,
    handle: (_, call) => {
      const now = owners.fleet.snapshot()
      const allowed = owners.registry.all().filter(model => modelAllowed(call.caller.token.models, model.id))
      const { readAt, fault, pending } = owners.reload.status()
      return {
        models: allowed.map(model => modelStatusView(model, now, owners)),
        ...(call.caller.scopes.includes('admin:read') && ownsMachine(call)
          ? { configuration: { read_at: Math.floor(readAt / 1000), fault, restart_for: [...pending] } }
          : {}),
      }
    },
  }),
]
