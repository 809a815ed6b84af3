import { useSyncExternalStore } from 'react'
import { tokensText as text } from '../text/organizations.ts'
import { Button } from './button.tsx'
import { CopyButton } from './code.tsx'
import { Dialog } from './dialog.tsx'
import { TextArea } from './fields.tsx'
import { Notice } from './page.tsx'

type Secret = Record<'name' | 'secret', string>

let shown: Secret | undefined
let redraw = () => {}

/** Shows a secret, which the server does not store, until the person has copied it. */
export function showSecret(secret: Secret | undefined): void {
  shown = secret
  redraw()
}

function watch(listener: () => void): () => void {
  redraw = listener
  return () => {
    redraw = () => {}
  }
}

/**
 * The dialog with the secret that is shown now. It stands beside the pages: a token that gets a new secret ends the
 * session that stands for it, and with the session every page. There is one.
 */
export function ShownSecret() {
  const secret = useSyncExternalStore(watch, () => shown)
  return secret && <SecretDialog {...secret} />
}

/** It leaves the page when the dialog is closed. */
function SecretDialog({ name, secret }: Secret) {
  const close = () => showSecret(undefined)
  return (
    <Dialog title={text.secretTitle(name)} close={close} isOnlyChance>
      <Notice kind="warning">{text.secret}</Notice>
      <div className="flex items-end gap-1">
        <div className="min-w-0 flex-1">
          <TextArea
            label={text.secretLabel}
            readOnly
            rows={3}
            value={secret}
            spellCheck={false}
            onFocus={event => event.target.select()}
            className="font-mono break-all"
          />
        </div>
        <CopyButton value={secret} label={text.copy} />
      </div>
      <div className="flex justify-end">
        <Button primary onClick={close} label={text.done} />
      </div>
    </Dialog>
  )
}
