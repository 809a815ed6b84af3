import type { ClusterApi } from '../../../../gpu/launcher/kubernetes/cluster-api.ts'
import { followChanges } from './_follow-changes.ts'

interface Job {
  metadata: { name: string; uid: string }
  spec: { activeDeadlineSeconds: number; ttlSecondsAfterFinished: number }
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

  const call = (method: 'PATCH' | 'DELETE', name: string, body: object) =>
    api.request({ method, path: `${path}/${name}`, body }, signal)
  const after = (ms: number, { uid }: Job['metadata'], act: () => Promise<unknown>) =>
    timers.set(
      uid,
      setTimeout(() => void act().catch(() => {}), ms),
    )

  async function seen(type: string, { metadata, spec, status = {} }: Job): Promise<void> {
    const { name, uid } = metadata
    clearTimeout(timers.get(uid))
    if (type === 'DELETED') return
    if (status.conditions)
      return void after(spec.ttlSecondsAfterFinished * 1_000, metadata, () =>
        call('DELETE', name, { preconditions: { uid } }),
      )
    if (status.startTime === undefined) {
      const startTime = `${new Date().toISOString().slice(0, 19)}Z`
      return void (await call('PATCH', name, { status: { startTime } }))
    }
    const end = Date.parse(status.startTime) + spec.activeDeadlineSeconds * 1_000
    const conditions = [{ type: 'Failed', status: 'True', reason: 'DeadlineExceeded' }]
    after(end - Date.now(), metadata, () => call('PATCH', name, { metadata: { uid }, status: { conditions } }))
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
