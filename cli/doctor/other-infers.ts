import { engineFacts } from '../../core/models/engine-facts.ts'
import type { Model } from '../../core/models/model.ts'
import { readText, send } from '../client/http.ts'
import { broken, type Finding, fine, warning } from './finding.ts'

/** Another infer of which models here are, and what it has answered. */
export interface OtherInferFacts {
  url: string
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

function findingOf({ url, variable, models, answer }: OtherInferFacts): Finding {
  const name = 'other infer'
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

/** Asks each other infer for the models that its token may use. Never rejects. */
export async function otherInfers(
  models: readonly Model[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<OtherInferFacts[]> {
  const used = models.flatMap(model => (model.enabled && engineFacts(model.engine).isInfer && model.url ? [model] : []))
  const groups = Map.groupBy(used, ({ url, api_key_env }) => `${api_key_env ?? ''} ${new URL(url!).origin}`)
  return Promise.all(
    [...groups.values()].map(async group => {
      const [{ url, api_key_env: variable }] = group as [Model]
      const token = variable === undefined ? undefined : environment[variable]
      const { origin } = new URL(url!)
      return {
        url: origin,
        variable,
        models: group.map(({ id, upstream_id }) => ({ id, upstreamId: upstream_id ?? id })),
        answer: variable !== undefined && !token ? { kind: 'unset' as const } : await listedBy(origin, token),
      }
    }),
  )
}

async function listedBy(origin: string, token: string | undefined): Promise<OtherInferFacts['answer']> {
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const answer = await send({ method: 'GET', url: `${origin}/std/v1/models`, token, signal })
    const text = await readText(answer, maxListBytes)
    if (answer.statusCode !== 200) return { kind: 'refused', status: answer.statusCode ?? 0, message: messageIn(text) }
    const { data } = JSON.parse(text) as { data: { id: string }[] }
    return { kind: 'listed', ids: new Set(data.map(({ id }) => id)) }
  } catch (thrown) {
    const { code, message, name } = thrown as NodeJS.ErrnoException
    const fault = name === 'TimeoutError' ? `no answer within ${timeoutMs / 1_000} s` : (code ?? message)
    return { kind: 'unreachable', fault: name === 'SyntaxError' ? 'its answer is none of an infer' : fault }
  }
}

/** The message of an error of the API, without its full stop. */
function messageIn(text: string): string {
  try {
    return (JSON.parse(text) as { error: { message: string } }).error.message.replace(/\.$/, '')
  } catch {
    return 'its answer is none of an infer'
  }
}
