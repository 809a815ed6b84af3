import { useMutation } from '@tanstack/react-query'
import { X } from 'lucide-react'
import { type FormEvent, type ReactNode, useId, useLayoutEffect, useRef } from 'react'
import { paramOf } from '../api/client.ts'
import { shellText } from '../text/shell.ts'
import { Button, IconButton } from './button.tsx'
import { Failed } from './page.tsx'

/** What a person fills in. */
const controls = 'input:not([type=checkbox], [type=radio], [hidden]), select, textarea'

interface DialogProps {
  title: string
  close: () => void
  wide?: boolean
  /** It is closed by its own button alone: what it shows is not shown again. */
  isOnlyChance?: boolean
  children: ReactNode
}

/**
 * A modal dialog. The focus begins in its first field, if it has one; the browser keeps it in the dialog, closes the
 * dialog with Escape, and gives the focus back.
 */
export function Dialog({ title, close, wide = false, isOnlyChance = false, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  // A dialog that is no longer in the page gives no focus back, so it is closed before it is removed.
  useLayoutEffect(() => {
    const shown = dialog.current!
    shown.showModal()
    shown.querySelector<HTMLElement>(controls)?.focus()
    return () => shown.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={event => {
        // React passes on what a dialog or a file field in this one has cancelled.
        if (event.target !== event.currentTarget) return
        event.preventDefault()
        if (!isOnlyChance) close()
      }}
      // Browsers close a dialog at the second Escape, whatever becomes of the event above.
      onKeyDown={event => isOnlyChance && event.key === 'Escape' && event.preventDefault()}
      className={`bg-surface text-text border-line m-auto max-h-[90dvh] w-[calc(100%-2rem)] overflow-y-auto rounded-lg border p-0 ${wide ? 'max-w-3xl' : 'max-w-lg'}`}
    >
      <div className="border-line bg-surface sticky top-0 flex items-center justify-between gap-2 border-b px-4 py-2">
        <h2 id={id} className="font-semibold">
          {title}
        </h2>
        {!isOnlyChance && <IconButton icon={X} label={shellText.close} onClick={close} />}
      </div>
      <div className="space-y-4 p-4">{children}</div>
    </dialog>
  )
}

interface ConfirmProps {
  title: string
  /** Names the action: `Delete workflow`. */
  action: string
  act: () => Promise<unknown>
  close: () => void
  /** False while the action cannot be done yet, or not at all. */
  isReady?: boolean
  children: ReactNode
}

/** Asks before something that cannot be undone, and shows why it failed. `children` says what will happen. */
export function Confirm({ title, action, act, close, isReady = true, children }: ConfirmProps) {
  const { mutate, error, isPending } = useMutation({ mutationFn: act, onSuccess: close })
  return (
    <Dialog title={title} close={close}>
      <div>{children}</div>
      {error && <Failed failure={error} />}
      <div className="flex justify-end gap-2">
        <Button onClick={close} label={shellText.cancel} />
        <Button danger busy={isPending} disabled={!isReady} onClick={() => mutate()} label={action} />
      </div>
    </Dialog>
  )
}

/** The buttons of a dialog with a form. */
export const FormButtons = ({ action, busy, close }: { action: string; busy: boolean; close: () => void }) => (
  <div className="flex justify-end gap-2">
    <Button onClick={close} label={shellText.cancel} />
    <Button primary type="submit" busy={busy} label={action} />
  </div>
)

interface FormDialogProps {
  title: string
  action: string
  about?: ReactNode
  save: (form: FormData) => Promise<unknown>
  close: () => void
  children: (faultOf: (name: string) => string | undefined) => ReactNode
}

/**
 * A dialog with a form, which stays open until its owner closes it. What the server refuses is said at the field that it
 * names, if one asks for its fault, else above the fields.
 */
export function FormDialog({ title, action, about, save, close, children }: FormDialogProps) {
  const { mutate, error, isPending } = useMutation({ mutationFn: save })
  const param = paramOf(error)
  let isAtField = false
  const fields = children(name => {
    if (name !== param) return undefined
    isAtField = true
    return error!.message
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    mutate(new FormData(event.currentTarget))
  }
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={submit} className="space-y-4">
        {about}
        {error && !isAtField && <Failed failure={error} />}
        {fields}
        <FormButtons action={action} busy={isPending} close={close} />
      </form>
    </Dialog>
  )
}
