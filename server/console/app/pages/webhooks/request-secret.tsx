import { useState } from 'react'
import { api, at, dataOf, refresh, useAnswer, useSession } from '../../api/client.ts'
import { announce } from '../../components/announcements.tsx'
import { Button } from '../../components/button.tsx'
import { CopyButton } from '../../components/code.tsx'
import { TextField } from '../../components/fields.tsx'
import { Queried } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { webhooksText } from '../../text/webhooks.ts'
import { RotateSecret } from './rotate-secret.tsx'

const text = webhooksText.secret

/** The secret that signs the webhooks of single requests. It is read only when a person wants to see it. */
export function RequestSecret() {
  const { can } = useSession()
  const [isShown, setShown] = useState(false)
  const [isRotating, setRotating] = useState(false)
  return (
    <div className="max-w-2xl space-y-4">
      <p>{text.about}</p>
      {isShown && <Secret />}
      <div className="flex flex-wrap gap-2">
        <Button onClick={() => setShown(now => !now)} label={isShown ? text.hide : text.show} />
        {can('admin:write') && <Button onClick={() => setRotating(true)} label={webhooksText.rotate} />}
      </div>
      {isRotating && <Rotate close={() => setRotating(false)} />}
    </div>
  )
}

function Secret() {
  const { session } = useSession()
  const query = useAnswer(
    ['webhooks', 'secret'],
    () => api.GET('/api/organizations/{organization}/webhook-secret', at({ organization: session.organization.id })),
    // It is not kept when it is hidden.
    { gcTime: 0 },
  )
  return (
    <Queried query={query} lines={2}>
      {({ signing_secret: secret, previous_secret_until: until }) => (
        <>
          <div className="flex items-end gap-1">
            <div className="min-w-0 flex-1">
              <TextField
                label={text.label}
                readOnly
                value={secret}
                onFocus={event => event.target.select()}
                className="font-mono"
              />
            </div>
            <CopyButton value={secret} label={text.copy} />
          </div>
          {until !== null && (
            <p className="text-muted">
              {webhooksText.facts.previous} <Time at={until} />
            </p>
          )}
        </>
      )}
    </Queried>
  )
}

function Rotate({ close }: { close: () => void }) {
  const { session } = useSession()
  return (
    <RotateSecret
      name={text.name}
      close={close}
      rotate={async body => {
        const params = at({ organization: session.organization.id })
        await dataOf(api.POST('/api/organizations/{organization}/webhook-secret/rotate', { ...params, body }))
        void refresh('webhooks', 'secret')
        announce('good', text.rotated)
      }}
    />
  )
}
