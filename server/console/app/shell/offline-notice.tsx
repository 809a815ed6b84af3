import { useEffect, useState } from 'react'
import { startLive, useLiveState } from '../api/live.ts'
import { Button } from '../components/button.tsx'
import { Notice } from '../components/notice.tsx'
import { shellText } from '../text/shell.ts'

/** Milliseconds after which a lost connection is worth a word; shorter interruptions heal by themselves. */
const patienceMs = 2_000

/** Says that the page may be out of date, as long as the server does not answer. */
export function OfflineNotice() {
  const offline = useLiveState() === 'offline'
  const [shown, setShown] = useState(false)
  useEffect(() => {
    if (!offline) return setShown(false)
    const timer = setTimeout(() => setShown(true), patienceMs)
    return () => clearTimeout(timer)
  }, [offline])
  if (!shown) return null
  return (
    <Notice kind="warning" className="m-3 mb-0">
      <span className="flex-1">{shellText.offline}</span>
      <Button small onClick={() => startLive().reconnect()}>
        {shellText.reconnect}
      </Button>
    </Notice>
  )
}
