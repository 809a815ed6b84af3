import type { Config } from '../../core/models/config.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import type { Model } from '../../core/models/model.ts'
import { errorMessageIn } from '../../core/models/peers/ask-peer.ts'
import { relayedHeader } from '../../core/models/relayed-header.ts'
import { readText, send } from '../client/http.ts'
import { broken, type Finding, fine, warning } from './finding.ts'

/** Another infer of which models here are, and what it has answered. */
export interface OtherInferFacts {
  url: string
  /** The name of the peer, all of whose models are offered here; undefined for entries of `models`. */
  peer?: string
  /** The variable with its token; undefined if none is named. */
  variable: string | undefined
  /** The models here, and their names there. */
  models: readonly { id: string; upstreamId: string }[]
  answer:
    | { kind: 'unset' }
    | { kind: 'unreachable'; fault: string }
    | { kind: 'refused'; status: number; message: string }
    | { kind: 'listed'; ids: ReadonlySet<string> }
}

const timeoutMs = 5_000
const maxListBytes = 8 << 20

/** Says of each infer that models of this one use whether it can be used, and has them. Pure. */
export const checkOtherInfers = (facts: readonly OtherInferFacts[]): Finding[] => facts.map(findingOf)

function findingOf({ url, peer, variable, models, answer }: OtherInferFacts): Finding {
  const name = peer === undefined ? 'other infer' : `peer ${peer}`
  switch (answer.kind) {
    case 'unset':
      return warning(
        name,
        `the variable ${variable} with the token for ${url} is not set here, so it was not asked`,
        `Set ${variable} in the environment of the server, and of this command.`,
      )
    case 'unreachable':
      return broken(name, `${url} cannot be reached: ${answer.fault}`, "Correct 'url', or start the server there.")
    case 'refused':
      return broken(
        name,
        `${url} answers ${answer.status}: ${answer.message}`,
        variable === undefined
          ? "Create a token there with 'infer token create', and name its variable in 'api_key_env'."
          : `Put a token of that server into ${variable}: infer token create`,
      )
    case 'listed': {
      if (peer !== undefined) return listedByPeer(name, url, answer.ids.size)
      const missing = models.filter(({ upstreamId }) => !answer.ids.has(upstreamId))
      if (missing.length === 0) return fine(name, `${url} has ${models.map(({ id }) => id).join(', ')}`)
      return broken(
        name,
        `${url} has no model ${missing.map(({ upstreamId }) => `'${upstreamId}'`).join(', ')} for this token`,
        `Correct 'upstream_id' of ${missing.map(({ id }) => `'${id}'`).join(', ')}, or allow the model for the token there.`,
      )
    }
  }
}

function listedByPeer(name: string, url: string, count: number): Finding {
  if (count > 0) return fine(name, `${url} offers ${count} ${count === 1 ? 'model' : 'models'}`)
  return warning(
    name,
    `${url} offers this server no model`,
    'Allow models for its token there, or add some. Models that it has from other infers are not passed on.',
  )
}

/** Asks each other infer for the models that its token may use. Never rejects. */
export async function otherInfers(
  { models, peers }: Pick<Config, 'models' | 'peers'>,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<OtherInferFacts[]> {
  const used = models.flatMap(model => (model.enabled && engineFacts(model.engine).isInfer && model.url ? [model] : []))
  const groups = Map.groupBy(used, ({ url, api_key_env }) => `${api_key_env ?? ''} ${new URL(url!).origin}`)
  const ask = async (url: string, variable: string | undefined): Promise<OtherInferFacts['answer']> => {
    const token = variable === undefined ? undefined : environment[variable]
    return variable !== undefined && !token ? { kind: 'unset' } : listedBy(url, token)
  }
  return Promise.all([
    ...[...groups.values()].map(async group => {
      const [{ url, api_key_env: variable }] = group as [Model]
      const { origin } = new URL(url!)
      return {
        url: origin,
        variable,
        models: group.map(({ id, upstream_id }) => ({ id, upstreamId: upstream_id ?? id })),
        answer: await ask(origin, variable),
      }
    }),
    ...Object.entries(peers).map(async ([peer, { url, api_key_env: variable }]) => {
      const { origin } = new URL(url)
      return { url: origin, peer, variable, models: [], answer: await ask(origin, variable) }
    }),
  ])
}

const noInfer = 'its answer is none of an infer'

async function listedBy(origin: string, token: string | undefined): Promise<OtherInferFacts['answer']> {
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const answer = await send({
      method: 'GET',
      url: `${origin}/std/v1/models`,
      token,
      signal,
      headers: { [relayedHeader]: '1' },
    })
    const text = await readText(answer, maxListBytes)
    if (answer.statusCode !== 200) {
      const message = errorMessageIn(text) ?? noInfer
      return { kind: 'refused', status: answer.statusCode ?? 0, message }
    }
    const { data } = JSON.parse(text) as { data: { id: string }[] }
    return { kind: 'listed', ids: new Set(data.map(({ id }) => id)) }
  } catch (thrown) {
    const { code, message, name } = thrown as NodeJS.ErrnoException
    const fault = name === 'TimeoutError' ? `no answer within ${timeoutMs / 1_000} s` : (code ?? message)
    return { kind: 'unreachable', fault: name === 'SyntaxError' ? noInfer : fault }
  }
}
