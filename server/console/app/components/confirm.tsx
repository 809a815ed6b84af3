import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { shellText } from '../text/shell.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { Failed } from './failed.tsx'

/** Asks before something that cannot be undone, and shows why it failed. `children` says what will happen. */
export function Confirm({
  title,
  action,
  act,
  close,
  isReady = true,
  children,
}: {
  title: string
  /** Names the action: `Delete workflow`. */
  action: string
  act: () => Promise<unknown>
  close: () => void
  /** False while the action cannot be done yet, or not at all. */
  isReady?: boolean
  children: ReactNode
}) {
  const { mutate, error, isPending } = useMutation({ mutationFn: act, onSuccess: close })
  return (
    <Dialog title={title} close={close}>
      <div>{children}</div>
      {error && <Failed failure={error} />}
      <div className="flex justify-end gap-2">
        <Button onClick={close}>{shellText.cancel}</Button>
        <Button danger busy={isPending} disabled={!isReady} onClick={() => mutate()}>
          {action}
        </Button>
      </div>
    </Dialog>
  )
}
