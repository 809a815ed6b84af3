import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import { string } from '../../../core/schemas/fields.ts'
import type { PublicJwk } from '../../../core/webhooks/signature.ts'
import { WebhookSecretView, webhookSecretView } from '../../../core/webhooks/webhook-view.ts'
import { actorOf } from '../../http/access/reach.ts'
import type { Call } from '../../http/request/call.ts'
import { routeOf } from '../../http/request/route.ts'
import { overlapField, type WebhookOwners, webhookTag } from '../../work/webhook-endpoint.ts'

const route = routeOf({ tag: webhookTag })
const path = '/api/organizations/:organization/webhook-secret'
const Organization = z.object({
  organization: string('Id of the organization of your token, as in `GET /api/me`.'),
})
const Rotate = z
  .strictObject({ overlap_seconds: overlapField })
  .meta({ id: 'WebhookSecretRotate', description: 'How to replace the secret.' })

const Jwk = z.object({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: string('The public key, base64url.'),
  kid: string('Id of the key.'),
  use: z.literal('sig'),
  alg: z.literal('EdDSA'),
}) satisfies z.ZodType<PublicJwk>
const Jwks = z
  .object({ keys: z.array(Jwk).describe('The keys.') })
  .meta({ id: 'JsonWebKeys', description: 'Public keys (RFC 7517).' })

/** Returns the organization of the path if it is the caller's. Throws Failure `organization_mismatch`. */
function ownOrganization(organization: string, { caller }: Call): string {
  if (organization === caller.organizationId) return organization
  throw new Failure(
    'organization_mismatch',
    `This token belongs to the organization ${caller.organizationId}, not to the one in the path.`,
  )
}

export const webhookSecretRoutes = (owners: WebhookOwners) => [
  route(`GET ${path}`, 'admin:read', {
    summary: 'Get webhook secret',
    description:
      'Returns the secret that signs the webhooks of requests: `webhook_url` of jobs, executions and generations. Registered endpoints have secrets of their own.',
    errorCodes: ['organization_mismatch'],
    params: Organization,
    response: WebhookSecretView,
    handle: async ({ params }, call) =>
      webhookSecretView(await owners.webhooks.organizationSecret(ownOrganization(params.organization, call))),
  }),
  route(`POST ${path}/rotate`, 'admin:write', {
    bucket: 'api',
    summary: 'Rotate webhook secret',
    description:
      'Makes a new secret for the webhooks of requests. For `overlap_seconds` messages are signed with both secrets.',
    errorCodes: ['organization_mismatch'],
    params: Organization,
    body: Rotate,
    example: { overlap_seconds: 3600 },
    response: WebhookSecretView,
    handle: async ({ params, body }, call) =>
      webhookSecretView(
        await owners.webhooks.rotateOrganizationSecret(
          ownOrganization(params.organization, call),
          body.overlap_seconds * 1000,
          actorOf(call),
        ),
      ),
  }),
  route('GET /.well-known/jwks.json', 'public', {
    aliases: ['/fal/rest/.well-known/jwks.json'],
    summary: 'Get public keys of webhooks',
    description:
      "Returns the public keys that verify webhooks with fal's signature: those of requests with `?fal_webhook=`.",
    response: Jwks,
    handle: () => ({ keys: owners.webhooks.publicKeys }),
  }),
]
