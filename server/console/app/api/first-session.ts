/**
 * The request for the session, which is sent before the other scripts are loaded. Undefined where a link with a one-time
 * code begins another session.
 */
export const firstSession: Promise<Response> | undefined = /[#&]code=/.test(location.hash)
  ? undefined
  : fetch('/api/session', { headers: { 'x-infer-console': '1' }, credentials: 'same-origin' })
// Whoever reads it later is told.
firstSession?.catch(() => {})
