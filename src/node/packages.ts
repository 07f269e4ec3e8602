/**
 * Optional packages, which the user installs where they are needed. The name is no literal at the import, so that
 * bundlers leave it alone: most of these packages hold native code, which no bundle can.
 */
export type LoadPackage = (name: string) => Promise<unknown>

export const loadPackage: LoadPackage = (name) => import(name)
