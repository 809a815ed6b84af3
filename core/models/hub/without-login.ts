/** Removes a user name and a password from an address for a message, even if it is not a valid URL. */
export const withoutLogin = (address: string): string => address.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1')
