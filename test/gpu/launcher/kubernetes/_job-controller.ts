import type { ClusterApi } from '../../../../gpu/launcher/kubernetes/cluster-api.ts'
import { followChanges } from './_follow-changes.ts'

interface Job {
  metadata: { name: string; uid: string }
  spec: { activeDeadlineSeconds: number }
  status?: { startTime?: string; conditions?: object[] }
}

/**
 * The controller of Jobs in small, with the one that deletes those that have ended: a Job starts when it is seen, fails at its
 * deadline, which may be moved, and is deleted then.
 */
export function startJobController(api: ClusterApi) {
  const closing = new AbortController()
  const { signal } = closing
  const timers = new Map<string, NodeJS.Timeout>()
  const path = `/apis/batch/v1/namespaces/${api.namespace}/jobs`

  async function fail({ name, uid }: Job['metadata']): Promise<void> {
    const conditions = [{ type: 'Failed', status: 'True', reason: 'DeadlineExceeded' }]
    await api.request(
      { method: 'PATCH', path: `${path}/${name}`, body: { metadata: { uid }, status: { conditions } } },
      signal,
    )
    await api.request({ method: 'DELETE', path: `${path}/${name}`, body: { preconditions: { uid } } }, signal)
  }

  async function seen(type: string, { metadata, spec, status = {} }: Job): Promise<void> {
    const { name, uid } = metadata
    clearTimeout(timers.get(uid))
    if (type === 'DELETED' || status.conditions) return
    if (status.startTime === undefined) {
      const startTime = `${new Date().toISOString().slice(0, 19)}Z`
      return void (await api.request(
        { method: 'PATCH', path: `${path}/${name}`, body: { status: { startTime } } },
        signal,
      ))
    }
    const end = Date.parse(status.startTime) + spec.activeDeadlineSeconds * 1_000
    timers.set(
      uid,
      setTimeout(() => void fail(metadata).catch(() => {}), end - Date.now()),
    )
  }

  const following = followChanges(api, path, seen, signal)
  return {
    async close(): Promise<void> {
      closing.abort()
      await following
      for (const timer of timers.values()) clearTimeout(timer)
    },
  }
}
