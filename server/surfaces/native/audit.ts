import { z } from 'zod'
import { AuditEntryView, auditEntryView, auditNumber } from '../../../core/accounts/audit-view.ts'
import { definedMembers } from '../../../core/members.ts'
import { array, namedObject, optionalStringUpTo, queryTime } from '../../../core/schemas/fields.ts'
import { OrganizationPath, reachOrganization } from '../../http/access/reach.ts'
import { pageEnd, pageFields, pageQuery } from '../../http/answer/page.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'

const route = routeOf({ tag: 'Organizations and tokens' })

const Page = namedObject('AuditPage', 'A page of the audit log.', {
  entries: array('The entries, newest first.', AuditEntryView),
  ...pageFields,
})

export const auditRoutes = (owners: Owners<'organizations'>) => [
  route('GET /api/organizations/:organization/audit', 'admin:read', {
    summary: 'List audit entries',
    description:
      'Returns who changed the organization, its limits, users and tokens, from where, and what was there before and after. Entries are kept for ever and have no secrets. A page may have fewer than `limit` entries although `has_more` is true: continue with `next_cursor`.',
    errorCodes: ['organization_mismatch', 'not_found'],
    params: OrganizationPath,
    query: z.strictObject({
      action: optionalStringUpTo(64, 'Only entries with this action, such as `token.created`.'),
      target: optionalStringUpTo(64, 'Only entries about the object with this id.'),
      since: queryTime.describe('Only entries of this second and later, in Unix seconds.'),
      until: queryTime.describe('Only entries before this second, in Unix seconds.'),
      ...pageQuery(cursor => auditNumber(cursor) !== undefined),
    }),
    response: Page,
    handle: async ({ params, query }, exchange) => {
      const { id } = await reachOrganization(params.organization, exchange, owners)
      const { records, next } = await owners.organizations.audit(
        id,
        definedMembers({
          limit: query.limit,
          ...(query.after === undefined ? {} : { before: auditNumber(query.after)! }),
          action: query.action,
          targetId: query.target,
          ...(query.since === undefined ? {} : { since: query.since * 1000 }),
          ...(query.until === undefined ? {} : { until: query.until * 1000 - 1 }),
        }),
      )
      return {
        entries: records.map(auditEntryView),
        ...pageEnd(next === null ? null : `audit_${next}`),
      }
    },
  }),
]
