import { useEffect, useState } from 'react'
import { type Attention, attentionOf } from './attention.ts'
import { api, useAnswer, useMachine, useModels, useOwnUse, useSession } from './client.ts'

const everyMs = 30_000
/** Milliseconds after which what stands beside the page is read: the page comes first. */
const patienceMs = 1_500

/**
 * What needs attention, read every 30 seconds. Of the checks of the installation only those count that this browser has run, as
 * they take seconds.
 */
export function useAttention(): readonly Attention[] {
  const { ownerCan } = useSession()
  const [enabled, enable] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => enable(true), patienceMs)
    return () => clearTimeout(timer)
  }, [])
  const isOwner = ownerCan('admin:read')
  const timing = { refetchInterval: everyMs, staleTime: everyMs }
  const configuration = useModels({ ...timing, enabled: enabled && isOwner })
  const status = useMachine({ ...timing, enabled: enabled && isOwner })
  const me = useOwnUse({ ...timing, enabled: enabled && !isOwner })
  const checks = useAnswer(['system', 'doctor'], () => api.GET('/api/system/doctor'), { enabled: false })
  return attentionOf({
    models: status.data?.models,
    configuration: configuration.data?.configuration,
    peers: status.data?.peers,
    savedFault: status.data?.saved_conversations.fault,
    limits: (status.data ?? me.data)?.limits,
    spend: (status.data ?? me.data)?.spend,
    findings: checks.data?.findings,
  })
}
