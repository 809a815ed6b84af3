import { Button } from '../../components/button.tsx'
import { CodeBlock } from '../../components/copy.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Notice } from '../../components/notice.tsx'
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
      <CodeBlock code={secret} label={text.secretLabel} />
      <div className="flex justify-end">
        <Button primary onClick={close}>
          {text.done}
        </Button>
      </div>
    </Dialog>
  )
}
