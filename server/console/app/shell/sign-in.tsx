import { type FormEvent, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { api, dataOf, type Session } from '../api/client.ts'
import { Button } from '../components/button.tsx'
import { CopyText } from '../components/code.tsx'
import { TextField } from '../components/fields.tsx'
import { Notice } from '../components/page.tsx'
import { shellText } from '../text/shell.ts'

/** Exchanges a token, or the one-time code of a link, for a session. The token is not kept in the browser. */
export function SignIn({ reason, signedIn }: { reason?: string | undefined; signedIn: (session: Session) => void }) {
  const [, go] = useLocation()
  const [failure, setFailure] = useState(reason)
  const [busy, setBusy] = useState(false)
  const [code] = useState(() => new URLSearchParams(location.hash.slice(1)).get('code'))
  const used = useRef(false)

  async function exchange(by: { token: string } | { code: string }): Promise<void> {
    setBusy(true)
    setFailure(undefined)
    try {
      const session = await dataOf(api.POST('/api/session', { body: by }))
      if ('code' in by) go('/', { replace: true })
      signedIn(session)
    } catch (thrown) {
      setFailure((thrown as Error).message)
      setBusy(false)
    }
  }

  useEffect(() => {
    if (code === null || used.current) return
    used.current = true
    // The code must not stay in the address bar or in the history.
    history.replaceState(null, '', location.pathname)
    void exchange({ code })
  })

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const token = new FormData(event.currentTarget).get('token')
    if (typeof token === 'string' && token.trim() !== '') void exchange({ token: token.trim() })
  }

  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <title>{shellText.signIn.title}</title>
      <form onSubmit={submit} className="bg-surface border-line w-full max-w-sm space-y-4 rounded-lg border p-6">
        <h1 className="text-lg font-semibold">{shellText.signIn.title}</h1>
        {failure !== undefined && <Notice kind="bad">{failure}</Notice>}
        <TextField
          label={shellText.signIn.token}
          hint={shellText.signIn.tokenHint}
          name="token"
          type="password"
          autoComplete="current-password"
          autoFocus
          required
          spellCheck={false}
        />
        <Button
          primary
          type="submit"
          busy={busy}
          className="w-full"
          label={busy && code !== null ? shellText.signIn.withCode : shellText.signIn.submit}
        />
        <p className="text-muted text-xs">
          {shellText.signIn.help} <CopyText>{shellText.signIn.command}</CopyText> {shellText.signIn.helpEnd}
        </p>
      </form>
    </main>
  )
}
