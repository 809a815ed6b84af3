import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { integer, string } from '../../../core/schemas/fields.ts'
import { cursorDescription, pageFields, pageLimit } from '../../http/answer/page.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { seconds } from '../../views/job-record.ts'
import { findWorkflow } from '../../views/workflow-record.ts'

const route = routeOf({ tag: 'Workflows' })

const Version = z.object({
  version: integer('Number of the version. Read it with `GET /api/workflows/{id}?version=`.'),
  name: string('Name of the workflow in this version.'),
  created_at: integer('Unix seconds at which the version was stored.'),
})
const Page = z
  .object({ versions: z.array(Version).describe('The versions, newest first.'), ...pageFields })
  .meta({ id: 'WorkflowVersionPage', description: 'A page of the versions of a workflow.' })

const cursor = /^[1-9]\d{0,8}$/

export const workflowVersionRoutes = (owners: Pick<Owners, 'workflows'>) => [
  route('GET /api/workflows/:id/versions', 'user:read', {
    summary: 'List workflow versions',
    description:
      'Returns the versions of a workflow, newest first. To restore one, read it and send it to `PUT /api/workflows/{id}`.',
    errorCodes: ['not_found'],
    params: z.object({ id: string('Id of the workflow: `wf_…`.') }),
    query: z.strictObject({
      limit: pageLimit,
      after: z.string().max(128).optional().describe(cursorDescription),
    }),
    response: Page,
    handle: async ({ params, query: { limit, after } }, call) => {
      if (after !== undefined && !cursor.test(after))
        throw new Failure('invalid_value', "'after' is not a cursor of this list.", { param: 'after' })
      const { id, organizationId } = await findWorkflow(params.id, call, owners)
      const page = { limit, ...(after === undefined ? {} : { before: Number(after) }) }
      const { versions, next } = await owners.workflows.versions(organizationId, id, page)
      return {
        versions: versions.map(({ version, name, createdAt }) => ({ version, name, created_at: seconds(createdAt)! })),
        has_more: next !== null,
        next_cursor: next === null ? null : String(next),
      }
    },
  }),
]
