import { send } from '../client/http.ts'
import { type Finding, warning } from './finding.ts'

export interface RemoteServerFacts {
  /** The value of INFER_URL. */
  url: string
  /** The status of its response to /readyz; undefined without a response. */
  status: number | undefined
  /** Why there was no response. */
  fault?: string
}

const timeoutMs = 3_000

/** Asks the server at INFER_URL whether it is ready. Never rejects. */
export async function remoteServerFacts(url: string): Promise<RemoteServerFacts> {
  // Users paste the base URL of an OpenAI client.
  const base = url.replace(/(\/std)?\/v1$/, '')
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const answer = await send({ method: 'GET', url: `${base}/readyz`, token: undefined, signal })
    return { url, status: answer.resume().statusCode }
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException
    return { url, status: undefined, fault: code ?? message }
  }
}

/** Reports that INFER_URL is set, because all other checks examine the machine on which the command runs. Pure. */
export function checkRemoteServer({ url, status, fault }: RemoteServerFacts): Finding {
  const state =
    status === 200 ? 'is ready' : status === undefined ? `cannot be reached (${fault})` : `is not ready (${status})`
  return warning(
    'INFER_URL',
    `the server at ${url} ${state}; all checks below are about this machine, not about that server`,
    "Run 'infer doctor' on that machine to check it, or unset INFER_URL. 'infer status' shows that server.",
  )
}
