import { send } from '../http.ts'
import { type Finding, warning } from './finding.ts'

export interface RemoteServerFacts {
  /** What INFER_URL names. */
  url: string
  /** The status of its answer to /readyz; undefined where none came. */
  status: number | undefined
  /** Why no answer came. */
  fault?: string
}

const patienceMs = 3_000

/** Asks the server that INFER_URL names whether it is ready. Never rejects. */
export async function remoteServerFacts(url: string): Promise<RemoteServerFacts> {
  // People paste the base address of an OpenAI client.
  const base = url.replace(/(\/std)?\/v1$/, '')
  try {
    const signal = AbortSignal.timeout(patienceMs)
    const answer = await send({ method: 'GET', url: `${base}/readyz`, token: undefined, signal })
    return { url, status: answer.resume().statusCode }
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException
    return { url, status: undefined, fault: code ?? message }
  }
}

/** All other checks examine the machine on which the command runs, which INFER_URL may make surprising. Pure. */
export function checkRemoteServer({ url, status, fault }: RemoteServerFacts): Finding {
  const state =
    status === 200 ? 'is ready' : status === undefined ? `cannot be reached (${fault})` : `is not ready (${status})`
  return warning(
    'INFER_URL',
    `the server at ${url} ${state}; all checks below are about this machine, not about that one`,
    "Run 'infer doctor' on that machine to check it, or unset INFER_URL. 'infer status' shows that server.",
  )
}
