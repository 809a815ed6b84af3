import { Button } from '../../components/button.tsx'
import { CopyButton } from '../../components/code.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { TextArea } from '../../components/fields.tsx'
import { Notice } from '../../components/page.tsx'
import { tokensText as text } from '../../text/organizations.ts'

export interface Secret {
  name: string
  secret: string
}

/** A secret, which the server does not store. It leaves the page when the dialog is closed. */
export function SecretDialog({ name, secret, close }: Secret & { close: () => void }) {
  return (
    <Dialog title={text.secretTitle(name)} close={close}>
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
        <Button primary onClick={close}>
          {text.done}
        </Button>
      </div>
    </Dialog>
  )
}
