import { readFileSync } from 'node:fs'
import { parseDocument } from 'yaml'
import { z } from 'zod'
import { Limits } from '../config.ts'
import { Failure } from '../failure.ts'
import { isNetwork } from '../network-address.ts'
import { faultOf, placeIn, syntaxFault } from './config-fault.ts'
import { Model } from './model.ts'
import { slugFault } from './slugs.ts'

/** infer.yaml. */
export const Config = z
  .strictObject({
    listen: z
      .string()
      .default('127.0.0.1:8787')
      .describe('The address to answer on, as host:port; 0.0.0.0 and [::] are every address of the machine.'),
    public_url: z
      .url()
      .optional()
      .describe(
        'The address under which clients reach the server, where a proxy or a tunnel is before it. All addresses in answers begin with it, those of files too; its host name is allowed.',
      ),
    allowed_hosts: z
      .array(z.string().regex(/^[A-Za-z0-9._-]+(?::\d{1,5})?$/, 'must be a host name, or name:port'))
      .default([])
      .describe(
        'Host names besides loopback and IP addresses under which the server answers, each alone or with a port (`gpu.lan:8443`); others are refused with `invalid_host`. Under `fal.run`, `queue.fal.run`, `rest.fal.ai`, `v3.fal.media`, and under a pair `<name>` and `queue.<name>`, models are at the root of the host, as clients of fal expect.',
      ),
    trusted_proxies: z
      .array(z.string().refine(isNetwork, 'must be an IP address or a network such as 10.1.0.0/16'))
      .default([])
      .describe(
        'Addresses or networks (CIDR) of proxies whose X-Forwarded-Proto, X-Forwarded-Host and X-Forwarded-For are believed.',
      ),
    metrics: z
      .enum(['local', 'token'])
      .default('local')
      .describe('Who reads /metrics without a token: `local`, direct connections from this machine; `token`, nobody.'),
    cors: z
      .strictObject({
        origins: z
          .array(
            z
              .string()
              .regex(
                /^(\*|[A-Za-z][A-Za-z0-9+.-]*:\/\/[^\s/?#@*]+)$/,
                'An origin has a scheme, a host, perhaps a port, and no path: https://app.example.com. For all pages, *.',
              ),
          )
          .default([])
          .describe('Origins whose web pages may use the API with a token; `*` for all. None when absent.'),
      })
      .prefault({})
      .describe('Web pages of other origins, in browsers. Signed addresses of files are open to all of them.'),
    models: z
      .array(Model)
      .nullish()
      .transform(models => models ?? [])
      .describe('What is offered. Without any, the toys that ship with infer are.'),
    media: z
      .strictObject({
        ffmpeg: z.string().optional().describe('The ffmpeg program; the one on the PATH when absent.'),
        ffprobe: z.string().optional().describe('The ffprobe program; the one on the PATH when absent.'),
        allowed_hosts: z
          .array(z.string())
          .optional()
          .describe('Where given, only these hosts are fetched from; a leading `*.` stands for any name below.'),
        allowed_addresses: z
          .array(z.string().refine(isNetwork, 'must be an IP address or a network such as 10.1.0.0/16'))
          .default([])
          .describe('Private addresses or networks (CIDR) that may be fetched from all the same, on any port.'),
      })
      .prefault({})
      .describe('What is done with the addresses of pictures and videos that callers send.'),
    limits: Limits,
  })
  .meta({ id: 'Config', title: 'infer.yaml' })
export type Config = z.output<typeof Config>

/**
 * Reads infer.yaml. No file means the defaults when `required` is false.
 * Throws Failure `invalid_value` whose message names the file, the line and what is wrong there.
 */
export function readConfig(path: string, required: boolean, check?: (model: Model) => unknown): Config {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    if (!required && (cause as NodeJS.ErrnoException).code === 'ENOENT') return Config.parse({})
    throw new Failure('invalid_value', `The configuration ${path} cannot be read: ${(cause as Error).message}.`, {
      cause,
    })
  }
  return parseConfig(text, path, check)
}

/**
 * The same for text that is at hand; `path` only names it in messages, which begin with `path:line:column`. `check`
 * throws a Failure for an enabled model that cannot be offered for reasons that the schema does not know.
 */
export function parseConfig(text: string, path: string, check?: (model: Model) => unknown): Config {
  const document = parseDocument(text)
  const [syntax] = document.errors
  if (syntax) throw new Failure('invalid_value', syntaxFault(syntax, path))
  const value: unknown = document.toJS() ?? {}
  const parsed = Config.safeParse(value)
  if (!parsed.success) throw faultOf(parsed.error, { value, document, text, path, schema: configSchema() })
  const { models } = parsed.data
  const wrong = (at: number, field: string, message: string) =>
    new Failure('invalid_value', `${placeIn(document, text, path, ['models', at, field])}: ${message}`)
  for (const [at, model] of models.entries()) {
    if (models.findIndex(other => other.id === model.id) !== at)
      throw wrong(at, 'id', `the model id '${model.id}' is used twice; ids must differ.`)
    const slug = slugFault(model, models.slice(0, at))
    if (slug) throw wrong(at, 'slug', slug)
    if (!check || !model.enabled) continue
    try {
      check(model)
    } catch (thrown) {
      throw thrown instanceof Failure ? wrong(at, 'engine', thrown.message) : thrown
    }
  }
  return parsed.data
}

/** infer.yaml as a JSON Schema (2020-12), for editors and for checks without infer. */
export const configSchema = (): object =>
  z.toJSONSchema(Config, {
    io: 'input',
    target: 'draft-2020-12',
    override({ jsonSchema }) {
      // The bounds of what JavaScript counts exactly are no bounds of ours.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      // What zod calls a format beyond the standard's own is in the pattern too.
      if (jsonSchema.pattern !== undefined) delete jsonSchema.format
    },
  })
